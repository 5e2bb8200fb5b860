// Package dra gives GPUs to pods by NVIDIA's DRA driver: devices in ResourceSlices that claims select, in place of the
// device plugin's counted resources.
//
// The two must never serve the same GPUs. Kubernetes keeps separate accounts of them, so both pods would be admitted and
// the second would fail on the node. The plan keeps the device plugin off by the node label that NVIDIA's operator and
// the sample DaemonSets go by, and expects its resources to be absent; 0 is absent, which is what kubelet leaves behind.
//
// The driver's feature gates decide what is published: with PassthroughSupport every GPU twice, for containers and for
// virtual machines; with DynamicMIG, which is alpha, every place of every MIG profile. Those that follow from the NodeType are
// turned on, and those that the driver does not start with together are refused. Sharing is a matter of each claim, and
// changes no device.
//
// Devices are compared by attribute, never by name: the driver's documentation and its code disagree about names. What
// a driver publishes of a model beyond its type, architecture and driver version is not known for every model, and not compared.
package dra
