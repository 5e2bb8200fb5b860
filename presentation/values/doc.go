// Package values says what the vendors' software in a tenant cluster must be told so that it agrees with the tenant's
// NodeTypes: as values for the vendors' Helm charts (Charts), or as the plain objects that those charts would make (Parts).
// Plans say what nodes name by label and what must be advertised; here is the other half, that somebody knows those names.
//
// Everything that a node needs before it is admitted tolerates the gate, and the NodeType's own taints; else the node would
// wait for what waits for the node.
//
// NodeTypes that want the same of a piece of software share it; those that want something else have a DaemonSet, a release,
// a driver or a DeviceConfig of their own, by the label ingot.dev/nodetype. A node has one NodeType, so that no two
// of them give the same GPUs away. Where the software has one setting for the whole cluster, NodeTypes that disagree
// are a *Conflict, which names both and says what to change:
//
//	software                by NodeType                           one for a cluster
//	device plugin           configuration, MIG strategy           -
//	NVIDIA's DRA driver     feature gates, driver root (Parts)    all of them (Charts)
//	NVIDIA's operator       driver, by NVIDIADriver objects       MIG strategy, toolkit, version of the vGPU manager
//	KubeVirt                -                                     the devices permitted
//	AMD's                   naming strategy, DeviceConfig         -
//
// NVIDIA's operator serves every node with its GPUs. So where one NodeType's driver comes from it, all others of NVIDIA's are
// served by it too, and Parts have only what it reads. Where GPUs go to virtual machines Charts have it as well, for the
// device plugin that KubeVirt needs has no other chart; it then installs no driver, and does not bind GPUs: Ingot does.
//
// Names of values are those of the charts of the releases that are pinned here. What no document says of them is in
// Chart.Warnings and Part.About, and never assumed: which feature gates and naming strategies a release knows, whether two
// releases of a chart get along, what the operator does to pods of DRA. Registries that only users have - of the vGPU manager's
// image and of AMD's driver - are theirs to fill in. Feature discovery comes with the charts alone: without it, labels that
// it would set are not judged.
package values
