// Package dra gives GPUs to pods by NVIDIA's DRA driver: devices in ResourceSlices that claims select, in place of the
// device plugin's counted resources.
//
// The two must never serve the same GPUs. Kubernetes keeps separate accounts of them, so both pods would be admitted and
// the second would fail on the node. The plan keeps the device plugin off by the node label that NVIDIA's operator and
// the sample DaemonSets go by, and expects its resources to be absent; 0 is absent, which is what kubelet leaves behind.
//
// Devices are compared by attribute, never by name: the driver's documentation and its code disagree about names. What
// a driver publishes of a model beyond its type, architecture and driver version is not known for every model, and not compared.
package dra
