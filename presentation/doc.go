// Package presentation resolves how GPUs are presented to pods. For a class of nodes it returns a v1alpha1.NodePlan: what the
// operating system must be configured with, and what the node must then advertise (Plan.Expectation). It refuses what cannot
// work before a machine is touched.
//
// The table of modes in presentation.go picks the package of the mode, which resolves a spec.Request. Package catalogue has the
// models of GPUs as data. Everything here is pure: the same request gives the same plan.
//
// Where a vendor's documents leave something open, there are four ways to deal with it, and it is never taken for certain. Every
// known variant is accepted (the names of GB200's profiles, the forms of a driver version). Or the NodeType must say it
// (vgpu.framework, vgpu.namePrefix, passthrough.resourceName, the OSImage's kernelModule). Or the request is refused with what
// to set instead. Or it is planned with a warning that says what to look at (Plan.Warnings: experimental/dynamic-mig,
// experimental/vendor-vfio, unverified/minimum-driver, unverified/mig-places, unverified/mig-names, unverified/vm-nvswitch,
// unverified/vgpu-nvswitch, unverified/amd-partition, unverified/amd-dra, unverified/nvlsm). The warning unset/mig-mode says
// that GPUs may keep a MIG mode that nothing on the node sets, and unstated/mig-parted that the OSImage does not mention the
// program that partitions GPUs. A minimum driver that no document names is empty in the catalogue and is not checked.
//
// A plan also has what the software in the tenant's cluster must be configured with so that it agrees with the node
// (Plan.Tenant): configurations that nodes choose by label, feature gates of DRA drivers, and the devices that KubeVirt must
// permit. The name of a configuration follows from its content, so that NodeTypes can share a cluster. Package tenantsoftware
// turns that into the values of the vendors' charts, or into plain objects, for all NodeTypes of a tenant together. Names of the
// vendors' software that both sides use are constants of package wellknown.
//
// The table of modes, generated from presentation.go:
//
// BEGIN MODES
//
//	vendor   mode         variant
//	nvidia   Passthrough  virtual machines
//	nvidia   Passthrough  containers, whole or shared, DRA
//	nvidia   Passthrough  containers, whole or shared, device plugin
//	nvidia   VGPU         host and guest
//	nvidia   MIG          strategies none, single, mixed; device plugin, DRA
//	nvidia   DRA          partitioned by layout
//	nvidia   DRA          whole, shared, VFIO, partitioned by claims
//	amd      Passthrough  containers, whole and partitioned, device plugin and DRA
//	amd      DRA          whole and partitioned, gpu.amd.com
//	generic  Passthrough  any accelerator with a device plugin or a DRA driver
//
// END MODES
package presentation
