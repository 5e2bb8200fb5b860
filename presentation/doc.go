// Package presentation knows what it takes to present GPUs to pods: for a class of nodes it says what the operating
// system must be told (Plan) and what the node must then advertise (Plan.Expectation), and it refuses what cannot work
// before a machine is touched.
//
// One package per mode resolves a Request; the table of modes in modes.go picks it. Models of GPUs are data in package
// catalogue. Everything here is pure: the same request gives the same plan.
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
