// Package presentation knows what it takes to present GPUs to pods: for a class of nodes it says what the operating
// system must be told (Plan) and what the node must then advertise (Plan.Expectation), and it refuses what cannot work
// before a machine is touched.
//
// One package per mode resolves a Request; the table of modes in modes.go picks it. Models of GPUs are data in package
// catalogue. Everything here is pure: the same request gives the same plan.
//
// What a vendor's documents leave open is never taken for certain. Either every known variant is accepted (the names of
// GB200's profiles, the forms of a driver version), or the NodeType is asked (vgpu.framework, vgpu.namePrefix,
// passthrough.resourceName, the OSImage's kernelModule), or it is refused with what to set instead, or it is planned with a
// Warning that says what to look at (Plan.Warnings: experimental/dynamic-mig, experimental/vendor-vfio,
// unverified/minimum-driver, unverified/mig-places, unverified/mig-names, unverified/vm-nvswitch, unverified/vgpu-nvswitch,
// unverified/amd-partition, unverified/amd-dra, unverified/nvlsm). Where a GPU may keep a mode that nothing on the node sets,
// unset/mig-mode says so; where an OSImage does not say that it can partition GPUs, unstated/mig-parted does. Minimum drivers
// that no document names are empty in the catalogue and not judged.
//
// A Plan says to the node what the node must do, and to the tenant cluster's software what that must be told to agree
// (Plan.Tenant): names of configurations that nodes choose by label, with their content, feature gates of DRA drivers, and
// what KubeVirt must permit. Names of configurations follow from their content, so that NodeTypes can share a cluster.
// Package tenantsoftware turns that into the values of the vendors' charts, or into plain objects, for all NodeTypes of a tenant together.
//
// The table of modes, generated from modes.go:
//
// BEGIN MODES
//
//	vendor   mode         variant                                                      this version
//	nvidia   Passthrough  virtual machines                                             known
//	nvidia   Passthrough  containers, whole or shared, DRA                             known
//	nvidia   Passthrough  containers, whole or shared, device plugin                   known
//	nvidia   VGPU         host and guest                                               known
//	nvidia   MIG          strategies none, single, mixed; device plugin, DRA           known
//	nvidia   DRA          partitioned by layout                                        known
//	nvidia   DRA          whole, shared, VFIO, partitioned by claims                   known
//	amd      Passthrough  containers, whole and partitioned, device plugin and DRA     known
//	amd      DRA          whole and partitioned, gpu.amd.com                           known
//	generic  Passthrough  any accelerator with a device plugin or a DRA driver         known
//
// END MODES
package presentation
