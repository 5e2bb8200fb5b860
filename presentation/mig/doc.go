// Package mig partitions NVIDIA GPUs into MIG instances, and says what the device plugin or the DRA driver must then advertise.
//
// Instances never survive a reboot, and from Hopper on the MIG mode does not either. So the unit that kubelet requires applies
// the full layout at every boot, by mig-parted and a configuration that names every GPU of the node. GPUs without a layout are
// set to not partitioned, because on Ampere an earlier installation may have left them partitioned. A node label keeps the MIG
// manager of the GPU operator off the node, because it would replace the layout with its own default.
//
// There are two mistakes that the device plugin does not report. With strategy mixed, a GPU in MIG mode without instances is
// missing from every resource; the counts, which are compared exactly, show it. With strategy single, one GPU with another
// layout removes all resources; such a layout is refused here.
package mig
