// Package amd gives AMD's Instinct GPUs to containers: whole, or partitioned alike on every GPU of a node, advertised by
// AMD's device plugin or by its DRA driver.
//
// A GPU is whole again after every boot and whenever its driver is loaded, so the partitions are written to sysfs at
// every boot before kubelet starts; memory first, because compute partitions that memory does not allow are refused by
// the kernel. Whether a new memory partition takes a reload of the driver is not documented: the script tries without,
// and reloads where the old one is still there. Where the driver comes from AMD's operator, its device config manager
// partitions, by those of its profiles whose names are known.
//
// What is valid is the kernel's rule over compute dies and memory partitions; what AMD does not document for the model is
// accepted with a warning. With CPX the driver of the BMC's display is kept away: it takes device numbers that partitions need.
package amd
