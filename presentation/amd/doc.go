// Package amd gives AMD's Instinct GPUs to containers, unpartitioned or with the same partition on every GPU of a node. AMD's
// device plugin or its DRA driver advertises them.
//
// A GPU is unpartitioned after every boot and whenever its driver is loaded, so a script writes the partitions to sysfs at every
// boot before kubelet starts. It writes the memory partition first, because the kernel refuses compute partitions that the
// memory partition does not allow. No document says whether a new memory partition needs a reload of the driver: the script
// first tries without one, and reloads the driver when the old partition is still there. When the driver comes from AMD's
// operator, its device config manager partitions the GPUs, by those of its profiles whose names are known.
//
// The kernel's rule over compute dies and memory partitions decides what is valid. What AMD does not document for the model is
// accepted with a warning. With CPX the driver of the BMC's display is kept away, because it takes device numbers that the
// partitions need.
package amd
