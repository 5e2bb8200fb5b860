// Package nvidia holds what all presentations of NVIDIA GPUs share. It checks what the image must have. It plans the driver,
// which comes from the image, from packages at the first boot, or from NVIDIA's operator in a pod. And it plans what sets the
// mode of the GPUs: a unit before kubelet starts, or the operator's managers after the node has joined, while the gate keeps
// pods away.
//
// These failures are silent, and a plan prevents them:
//
//   - The nouveau driver takes a GPU before NVIDIA's driver does. The image must blacklist nouveau on the kernel command line,
//     which also covers the initramfs.
//   - On Ampere the MIG mode is kept in the GPU and survives a re-image. A device plugin with MIG strategy none still counts a
//     GPU that was left in MIG mode without instances. From Hopper on the mode is lost at every boot. So a unit that kubelet
//     requires sets the mode of every GPU at every boot, and a node whose GPUs have the wrong mode does not join. Where that
//     needs a reset of the GPU, nvidia_drm must not hold the GPU (NVIDIA/mig-parted#181).
//   - On servers with NVSwitches CUDA fails with error 802 unless the fabric manager runs, while the node advertises every
//     GPU. The fabric manager refuses a driver of another version, so the unit requires that it runs. Boards with NVLink 5
//     also need InfiniBand modules, through which the subnet manager reaches the switches. The trays of a GB200 or GB300 rack
//     have no fabric manager. There the DRA driver's compute domains run IMEX and the service of the image is masked, unless
//     the NodeType says otherwise.
//   - Two drivers are installed. An image that has a driver is refused when packages or the operator bring another. A package
//     name with a wildcard can bring a fabric manager of another branch, so each package is written with its full version.
//   - A pod sets NVIDIA_VISIBLE_DEVICES=all, asks for no GPU, and has every GPU of its node: by default the container toolkit
//     gives what the variable names to any container. With gpu.tenancy: Shared it ignores the variable, unless the container is
//     privileged, and the device plugin names devices by CDI.
//   - A shared GPU looks like several GPUs. A node label names the configuration that says how often the device plugin
//     advertises it.
package nvidia
