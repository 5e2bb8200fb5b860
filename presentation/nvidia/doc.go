// Package nvidia is what every presentation of NVIDIA GPUs with the driver in the image shares: what the image must
// have, and the unit that sets the mode of the GPUs before kubelet starts.
//
// What can go wrong without anybody noticing, and what a plan does about it:
//   - nouveau takes the GPU first: the image must blacklist it on the kernel command line, which also covers the initramfs.
//   - On Ampere the MIG mode is kept in the GPU and survives a re-image. A GPU left in MIG mode without instances is
//     still counted by a device plugin with MIG strategy none. From Hopper on the mode is gone after every boot. So the
//     mode of every GPU is set at every boot, by a unit that kubelet requires: a node whose GPUs have the wrong mode
//     does not join. Where that takes a reset of the GPU, nvidia_drm must not hold it (NVIDIA/mig-parted#181).
//   - On servers with NVSwitches CUDA fails with error 802 unless the fabric manager runs, while the node advertises
//     every GPU. The fabric manager itself refuses a driver of another version; the unit requires it to run.
package nvidia
