// Package passthrough gives whole NVIDIA GPUs to containers on bare metal: no hypervisor and no vfio, the operating system
// drives the PCIe function itself and the device plugin advertises nvidia.com/gpu, once for each GPU, or so many times as
// pods share it by time-slicing or MPS.
package passthrough
