// Package dra gives GPUs to pods by NVIDIA's DRA driver: claims select devices in ResourceSlices, instead of counted resources
// of the device plugin.
//
// The DRA driver and the device plugin must never serve the same GPUs. Kubernetes keeps separate accounts of the two, so it
// would admit a pod of each to the same GPU, and the second pod would fail on the node. The plan keeps the device plugin off the
// node by the node label that NVIDIA's operator and the sample DaemonSets obey, and expects its resources to be absent. A
// quantity of 0 counts as absent, because kubelet leaves it behind.
//
// The feature gates of the driver decide what is published. With PassthroughSupport it publishes every GPU twice, for containers
// and for virtual machines, until a claim of one form is prepared: then it withdraws the other. So the promise is for each GPU, once
// the node was admitted: one of its forms is there. With DynamicMIG, which is alpha, it publishes every placement of every MIG profile. Gates that
// follow from the NodeType are enabled, and gates that the driver does not start with together are refused. Each claim says
// whether it shares a GPU, so sharing changes no device.
//
// Devices are compared by attribute, never by name, because the driver's documentation and its code disagree about names. Beyond
// type, architecture and driver version it is not known for every model what the driver publishes, and no more is compared.
package dra
