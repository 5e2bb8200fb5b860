// Package measured compares Ingot with recordings of real GPUs. A folder testdata/<name> has what NVIDIA's own software published of one server: the labels of
// feature discovery, what the device plugin registered, the ResourceSlices of the DRA driver, and what NVML says of MIG. None of it was written by hand, but UUIDs,
// serial numbers and names of machines are replaced.
//
// Recorded were one H100 80GB HBM3 and one H200, each with driver 580.159.04, by GPU feature discovery and device plugin 0.19.3, NVIDIA's DRA driver 0.4.1 and a
// kube-apiserver 1.37. They were not partitioned, and no setting of theirs was changed: what the DRA driver says with DynamicMIG is of a driver whose call to turn MIG
// mode off was refused.
//
// Four things are compared: the verdict on such a node, for the NodeType that it is of and for every other model; the devices that the class of an Entitlement
// selects; what a simulated server publishes; and the catalogue's MIG profiles. Package vendor's own tests pin what was read in the vendors' code.
package measured
