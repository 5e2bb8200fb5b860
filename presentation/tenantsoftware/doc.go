// Package tenantsoftware configures the vendors' software in a tenant's cluster so that it agrees with the tenant's NodeTypes: as
// values for the vendors' Helm charts (Charts), or as the plain objects that those charts would make (Components). A plan
// names configurations by node label and expects resources; the software configured here knows those names and advertises those resources.
// Each vendor has a package of its own.
//
// Every DaemonSet that a node needs before it is admitted tolerates the gate and the NodeType's own taints. Otherwise the node
// would wait for the DaemonSet's pod, and the pod for the admission of the node.
//
// NodeTypes that need the same settings of a piece of software share it. NodeTypes that need other settings have a DaemonSet, a
// Helm release, a driver or a DeviceConfig of their own, selected by the label ingot.dev/nodetype. A node has one NodeType, so
// two of them never advertise the same GPUs. Where the software has one setting for the whole cluster, NodeTypes that need
// different values are a *software.Conflict, which names both and says what to change:
//
//	software                by NodeType                                one for a cluster
//	device plugin           configuration, MIG strategy                -
//	NVIDIA's DRA driver     feature gates, driver root (Components)    all of them (Charts)
//	NVIDIA's operator       driver, by NVIDIADriver objects            MIG strategy, toolkit, version of the vGPU manager
//	KubeVirt                -                                          the devices permitted
//	AMD's                   naming strategy, DeviceConfig              -
//
// NVIDIA's operator serves every node that has NVIDIA GPUs. When the driver of one NodeType comes from it, it serves the other
// NodeTypes of NVIDIA's too, and Components has only the objects that it reads. When GPUs go to virtual machines Charts has the operator as
// well, because the device plugin that KubeVirt needs has no other chart; the operator then installs no driver, and does not
// bind GPUs, because Ingot does.
//
// Names of values are those of the charts of the pinned releases. What no document says of them stands in Chart.Warnings and
// Component.About, and is never assumed: which feature gates and naming strategies a release knows, whether two releases of a chart
// work side by side, what the operator does to pods that use DRA. Users fill in the registries that only they have: those of
// the vGPU manager's image and of AMD's driver. Feature discovery is part of both: where it does not run, the
// labels that it would set are not judged.
package tenantsoftware
