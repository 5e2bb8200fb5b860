// Package vgpu gives parts of NVIDIA GPUs to virtual machines. A host makes virtual GPUs at every boot, by the framework that
// its kernel has. A guest is a node whose GPUs are virtual; it needs a licence.
//
// Hosts with mediated devices make them with nvidia-vgpu-dm and its configuration, and NVIDIA's KubeVirt device plugin
// advertises them by type. Where NVIDIA's driver provides the virtual functions (VendorVFIO: from Ada on with kernel 6.8 or
// newer, on Ampere with some kernels), neither of the two supports them. There a script sets the type of each function, and
// KubeVirt 1.9 or newer advertises them. All functions have one PCI id, so a node can have one type only. That is experimental.
//
// The catalogue has the types of each GPU, from the configuration that NVIDIA's operator ships. Types that share a GPU in time
// must have the same size. Types that have a MIG instance must be placed as the instances are.
package vgpu
