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
//	vendor   mode         variant                                              this version
//	nvidia   Passthrough  driver from packages or the vendor's operator        refused
//	nvidia   Passthrough  workload VM                                          refused
//	nvidia   Passthrough  shared (time-slicing, MPS)                           refused
//	nvidia   Passthrough  containers, driver in the image, DRA                 known
//	nvidia   Passthrough  containers, driver in the image, device plugin       known
//	nvidia   VGPU         host and guest                                       refused
//	nvidia   MIG          driver from packages or the vendor's operator        refused
//	nvidia   MIG          strategies none, single, mixed; device plugin, DRA   known
//	nvidia   DRA          driver from packages or the vendor's operator        refused
//	nvidia   DRA          shared (time-slicing, MPS)                           refused
//	nvidia   DRA          devices MIG, VFIO                                    refused
//	nvidia   DRA          devices GPU, driver in the image                     known
//	amd      Passthrough  whole GPUs and partitions                            refused
//	amd      DRA          gpu.amd.com                                          refused
//	generic  Passthrough  any accelerator with a device plugin                 refused
//
// END MODES
package presentation
