// Package software is what the pods of vendors' software do on a simulated server: drivers that come in pods, managers that
// cut GPUs by a label of their node, feature discovery, device plugins and DRA drivers, for containers and virtual machines.
//
// A pod is known by its image and command. Each finds what is on the machine at that moment, and nothing that a NodeType
// promised:
//
//	NVIDIA's driver, vGPU manager, container toolkit, VFIO manager, MIG manager, vGPU device manager, device plugin, feature
//	discovery and DRA driver; the KubeVirt device plugin, which names devices by its pci.ids file and by mediated types
//	KubeVirt's own virt-handler, by the permittedHostDevices of the KubeVirt object
//	AMD's device plugin, node labeller, device config manager and DRA driver
//	anybody's device plugin or DRA driver that says by its arguments what it advertises (generic.go)
//
// Assumed, where no document says: AMD's device config manager does by its profile's name what that says, and AMD's operator
// loads its driver before it.
package software
