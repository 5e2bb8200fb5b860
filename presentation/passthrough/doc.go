// Package passthrough gives whole NVIDIA GPUs to containers on bare metal: no hypervisor and no vfio, the operating system
// drives the PCIe function itself and the device plugin advertises nvidia.com/gpu.
//
// What can go wrong without anybody noticing, and what the plan does about it:
//   - nouveau takes the GPU first: the image must blacklist it on the kernel command line, which also covers the initramfs.
//   - On Ampere the MIG mode is kept in the GPU and survives a re-image. A GPU left in MIG mode without instances is
//     still counted by a device plugin with MIG strategy none. So the mode is set to disabled at every boot, by a unit
//     that kubelet requires: a node whose GPUs have the wrong mode does not join.
//   - On servers with NVSwitches CUDA fails with error 802 unless the fabric manager runs, while the node advertises
//     every GPU. The fabric manager itself refuses a driver of another version; that unit requires it to run.
package passthrough
