// Package vgpu gives parts of NVIDIA GPUs to virtual machines. A host makes virtual GPUs at every boot, by the framework
// that its kernel has; a guest is a node whose GPUs are virtual, and that needs a licence.
//
// Hosts with mediated devices make them with nvidia-vgpu-dm and its configuration, and NVIDIA's KubeVirt device plugin
// advertises them by type. Where NVIDIA's driver hands out virtual functions itself (VendorVFIO: from Ada on with kernel
// 6.8 or newer, on Ampere with some kernels), neither of the two knows them: a script sets the type of each function, and KubeVirt
// 1.9 or newer advertises them itself. They share one PCI id, so that a node can have one type. That is experimental.
//
// Which types a GPU has is data of the catalogue's, from the configuration that NVIDIA's operator ships. Types that share
// a GPU in time must have the same size; types with a MIG instance behind them must be placed as the instances are.
package vgpu
