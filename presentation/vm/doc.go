// Package vm gives whole NVIDIA GPUs to KubeVirt's virtual machines: the IOMMU is on, no driver of NVIDIA's is in the image,
// and every GPU is bound to vfio-pci, by its PCI ids or by its address, before kubelet starts.
//
// The binding does not rely on which module comes first: a script that kubelet waits for sets driver_override on each
// function, which also finds the GPU that is missing. On Grace the vendor's own VFIO driver is taken, as NVIDIA's operator does.
//
// The resource is named by the rule of NVIDIA's KubeVirt device plugin, over the pci.ids file of its release 1.6.0. The
// name changes with that file, so a GPU that the file lacks, or lists under several names, needs a resourceName.
package vm
