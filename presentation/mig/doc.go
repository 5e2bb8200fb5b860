// Package mig partitions NVIDIA GPUs into MIG instances, and says what the device plugin or the DRA driver must then advertise.
//
// Instances never survive a reboot, and from Hopper on neither does the mode. So the unit that kubelet requires applies
// the whole layout at every boot, with mig-parted and a configuration that names every GPU of the node: those without a
// layout are set to whole, because on Ampere they may come from an earlier owner as partitioned. The GPU operator's MIG
// manager is kept off the node by label, as it would undo the layout with its own default.
//
// Two mistakes the device plugin does not report: with strategy mixed a GPU in MIG mode without instances is missing from
// every resource, and with strategy single one odd GPU takes all resources away. The first shows in the counts, which
// are exact; the second is refused here.
package mig
