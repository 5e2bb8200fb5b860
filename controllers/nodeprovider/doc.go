// Package nodeprovider is the controller of NodeProviders. It claims the host namespace of a NodeProvider by an annotation of the Namespace,
// and reports in the condition Ready whether the namespace is the NodeProvider's. Beside that it asks what the hosts are installed by: the boot
// service (BootServiceReachable) or Ironic (InstallerReachable).
//
// The claim waits for nothing else than the rights to drive hosts: they are registered and inspected before there is a NodeType or an OSImage. A namespace that another
// NodeProvider has claimed is not claimed, and neither is one whose hosts a baremetal-operator serves, unless the NodeProvider is of the
// kind metal3.
package nodeprovider
