// Package passthrough presents unpartitioned NVIDIA GPUs on bare metal to containers or to KubeVirt's virtual machines.
//
// For containers there is no hypervisor and no VFIO: the operating system drives the PCIe function, and the device plugin
// advertises nvidia.com/gpu once for each GPU, or several times when pods share it by time-slicing or MPS.
//
// For virtual machines the IOMMU is on, the image has no NVIDIA driver, and every GPU is bound to vfio-pci, by its PCI ids or by
// its address, before kubelet starts. The binding does not depend on the order in which modules are loaded: a script that
// kubelet waits for sets driver_override on each function. The script also finds out when a GPU is missing. On Grace it
// uses NVIDIA's own VFIO driver, as NVIDIA's operator does.
//
// The resource of virtual machines is named by the rule of NVIDIA's KubeVirt device plugin, over the pci.ids file of its release 1.6.0. The
// name changes with that file, so a GPU that the file lacks, or lists under several names, needs a resourceName.
package passthrough
