// Package nvidia is what presentations of NVIDIA GPUs share: what the image must have, where the driver comes from - the
// image, packages at the first boot, or the vendor's operator in a pod - and what sets the mode of the GPUs: a unit before
// kubelet starts, or the operator's managers after the node has joined, while the gate keeps pods away.
//
// What can go wrong without anybody noticing, and what a plan does about it:
//   - nouveau takes the GPU first: the image must blacklist it on the kernel command line, which also covers the initramfs.
//   - On Ampere the MIG mode is kept in the GPU and survives a re-image. A GPU left in MIG mode without instances is
//     still counted by a device plugin with MIG strategy none. From Hopper on the mode is gone after every boot. So the
//     mode of every GPU is set at every boot, by a unit that kubelet requires: a node whose GPUs have the wrong mode
//     does not join. Where that takes a reset of the GPU, nvidia_drm must not hold it (NVIDIA/mig-parted#181).
//   - On servers with NVSwitches CUDA fails with error 802 unless the fabric manager runs, while the node advertises
//     every GPU. The fabric manager itself refuses a driver of another version; the unit requires it to run. Boards with
//     NVLink 5 need InfiniBand modules besides, through which its subnet manager reaches the switches. Trays of a GB200 or
//     GB300 rack have no fabric manager of their own; IMEX is run by the DRA driver's compute domains, and the image's own
//     service is masked, unless the NodeType says otherwise.
//   - Two drivers: an image with one is refused where packages or the operator bring another. Packages with a wildcard
//     once brought a fabric manager of another branch, so each is written with its whole version.
//   - A shared GPU looks like several: how often the plugin advertises it is named by a label and told to the plugin.
package nvidia
