// Package pci simulates the PCI bus of a server: which driver is bound to which function, the files of sysfs with which scripts read
// and change that, and the files that the drivers of accelerators add.
//
// A driver takes what it knows by its ids; vfio-pci takes what driver_override or its parameter ids names, and only while the
// IOMMU is on. AMD's driver keeps the partitions of its GPUs and comes with whole ones (ROCm, "GPU partitioning"); that another
// memory partition waits for the driver's next start is assumed. NVIDIA's vGPU manager adds virtual functions, and with kernels
// from 6.8 on their types; older kernels, and Turing with all, have mediated devices instead (kubevirt#16890).
package pci
