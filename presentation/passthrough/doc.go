// Package passthrough gives whole NVIDIA GPUs to containers on bare metal: no hypervisor and no vfio, the operating system
// drives the PCIe function itself and the device plugin advertises nvidia.com/gpu.
package passthrough
