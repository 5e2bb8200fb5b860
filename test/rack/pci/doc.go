// Package pci is the PCI bus of a simulated server as its kernel shows it: which driver holds which function, the files of
// sysfs by which scripts see and change that, and what the drivers of accelerators add to them.
//
// A driver takes what it knows by its ids; vfio-pci takes what driver_override or its parameter ids names, and only while the
// IOMMU is on. AMD's driver keeps the partitions of its GPUs and comes with whole ones (ROCm, "GPU partitioning"); that another
// memory partition waits for the driver's next start is assumed. NVIDIA's vGPU manager adds virtual functions, and with kernels
// from 6.8 on their types; older kernels, and Turing with all, have mediated devices instead (kubevirt#16890).
package pci
