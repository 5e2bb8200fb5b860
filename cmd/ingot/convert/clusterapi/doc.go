// Package clusterapi converts the objects of a site with Cluster API and its provider for Metal3 to objects of Ingot: `ingot convert metal3`.
//
// A MachineDeployment becomes a NodeType and a NodePool, with what its Metal3MachineTemplate, Metal3DataTemplate and KubeadmConfigTemplate say. Its
// image becomes an OSImage, its Cluster a TenantCluster that nodes join by kubeadm, and each namespace with hosts a NodeProvider of kind metal3.
// BareMetalHosts stay as they are, and so do control planes, which are no nodes for tenants.
//
// The conversion guesses nothing: what Cluster API does not know, such as the GPUs and what is baked into an image, is asked for. What Ingot has no
// field for is reported, object by object.
package clusterapi
