package cloudinit

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/containerd"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/cloudinit/properties"
)

// Limit is the largest total size in bytes of a node's documents. They share one Secret, of which the API server accepts 1 MiB.
const Limit = 512 << 10

// LargeUserData is the size in bytes above which some clouds and BMCs refuse user data, or become slow.
const LargeUserData = 16 << 10

// Input has everything from which a node's documents are rendered.
type Input struct {
	// Kind of user data that the image reads; empty means cloud-init.
	Kind v1alpha1.UserDataKind
	// OS is the image's operating system: the ID of its os-release. Only Ignition uses it.
	OS string
	// KernelArguments are the kernel arguments that the image has. Only Ignition uses them, to set those that are missing.
	KernelArguments []string
	// Layers are the users' user data. A later layer takes precedence over an earlier one.
	Layers []Layer
	// Properties of NodeProvider, NodeType and Machine. A later level takes precedence over an earlier one. They can add a last layer,
	// SSH keys and the network.
	Properties []properties.Level
	// SSHKeys are authorized for the image's default user.
	SSHKeys []string
	// Plan has the configuration of the operating system that the GPU presentation needs.
	Plan v1alpha1.NodePlan
	// Machine of the node.
	Machine MachineInput
	// Host of the Machine.
	Host HostInput
	// Network of the nodes; nil or empty: DHCP and no resolvers.
	Network *v1alpha1.NetworkSpec
	// Ranges that the host's address must be in: IP1-IP2,IP3-IP4; empty: every address is accepted.
	Ranges string
	// NetworkData is an OpenStack network_data document that replaces Network; empty: Network is used.
	NetworkData Layer
	// Node has what kubelet registers, and how pods on it resolve names.
	Node NodeInput
	// Kubelet is the image's kubelet and the user's settings of it.
	Kubelet KubeletInput
	// Containerd is what the image's containerd must do.
	Containerd containerd.Node
	// Gate is the key of the taint that keeps pods off the node until its verdict passes; empty: there is no gate.
	Gate string
	// Join has what the node needs to join. When it is nil, the documents are rendered without secrets, for the time after the join.
	Join *kubelet.Join
	// Secrets are the contents of Plan.SecretFiles. They are used only when Join is set.
	Secrets Secrets
}

// Layer is one layer of the users' user data.
type Layer struct {
	// Name of the object that has the layer: NodeProvider hall-1.
	Name string
	// Property of the object that has the layer; empty: the layer is its userData.
	Property string
	// Text is a #cloud-config document or a script that begins with #!, and for Ignition a butane document. A blank text is
	// ignored.
	Text string
}

// String returns the name of the layer in messages.
func (l Layer) String() string {
	if l.Property == "" {
		return l.Name
	}
	return l.Name + ": property " + l.Property
}

// MachineInput describes the Machine of the node.
type MachineInput struct {
	// Name of the Machine. It is also the name of the Node and the host name.
	Name string
	// Namespace of the Machine. Only templates use it.
	Namespace string
	// UID of the Machine.
	UID string
	// Revision names the NodeTypeRevision.
	Revision string
	// Attempt counts the Machine's installations.
	Attempt int64
}

// HostInput describes the host of the Machine.
type HostInput struct {
	// BootMAC is the MAC of the NIC to configure; empty: no NIC is configured, and the image's default is used, which is DHCP.
	BootMAC string
	// IPAddress of that NIC, with or without prefix length; empty: the NIC uses DHCP.
	IPAddress string
	// Gateway of the host; empty: the gateway of Network.
	Gateway string
	// Resolvers of the host; empty: the resolvers of Network.
	Resolvers []string
	// Name of the BareMetalHost. Only templates use Name, Labels and Annotations.
	Name string
	// Labels of the BareMetalHost.
	Labels map[string]string
	// Annotations of the BareMetalHost.
	Annotations map[string]string
}

// Annotations of vMetal on a BareMetalHost. They are read so that hosts of vMetal work without a change.
const (
	annotationAddress   = "metal3.vcluster.com/ip-address"
	annotationResolvers = properties.DNSServers
)

// HostOf returns the input for a BareMetalHost. Its address is the annotation ingot.dev/ip-address, or else vMetal's annotation.
// Gateway and resolvers are vMetal's annotations.
func HostOf(name, bootMAC string, labels, annotations map[string]string) HostInput {
	out := HostInput{
		Name: name, BootMAC: bootMAC, Labels: labels, Annotations: annotations,
		IPAddress: cmp.Or(annotations[v1alpha1.AnnotationIPAddress], annotations[annotationAddress]),
		Gateway:   annotations[network.AnnotationGateway],
	}
	for _, s := range strings.Split(annotations[annotationResolvers], ",") {
		if s = strings.TrimSpace(s); s != "" {
			out.Resolvers = append(out.Resolvers, s)
		}
	}
	return out
}

// NodeInput has what kubelet registers, and how pods on it resolve names.
type NodeInput struct {
	// Labels of the Node. Labels that kubelet may not set on its own Node are left out. The controllers set them.
	Labels map[string]string
	// Taints of the Node, in addition to the gate.
	Taints []corev1.Taint
	// ClusterDNS and ClusterDomain are what pods resolve names with; empty: the image's own resolvers.
	ClusterDNS    []string
	ClusterDomain string
	// Method of the join; empty: tlsBootstrap.
	Method v1alpha1.JoinMethod
	// ProviderID says who sets the Node's providerID; empty: kubelet, with that of its installation.
	ProviderID v1alpha1.ProviderIDSource
	// Networks are those in which the node's own addresses are, one for each family; empty: the address of the default route.
	Networks []string
	// ServerTLSBootstrap: kubelet requests its serving certificate of the cluster; false: it makes its own.
	ServerTLSBootstrap bool
}

// KubeletInput is the image's kubelet and the user's settings of it.
type KubeletInput struct {
	// Version of the image's kubelet, without v; empty: it is unknown, and taken for a current one.
	Version string
	// Members are the user's members of KubeletConfiguration, a JSON object: NodeType.spec.kubelet; empty: there are none.
	Members []byte
}

// Documents are the documents that a node's first boot reads.
type Documents struct {
	// UserData is a #cloud-config, a MIME message with a #cloud-config and the users' scripts, or an Ignition configuration. It is
	// secret when Input.Join is set, because it then has the bootstrap token and the contents of Secrets.
	UserData []byte
	// NetworkData is an OpenStack network_data.json; nil: there is none, and the image uses its default.
	NetworkData []byte
	// MetaData is an OpenStack meta_data.json.
	MetaData []byte
}

// Warnings returns what an operator should know although it is not an error.
func (d Documents) Warnings() []string {
	if len(d.UserData) <= LargeUserData {
		return nil
	}
	return []string{fmt.Sprintf("the user data has %d bytes, more than %d: fetch large files at the first boot, or bake them into the image", len(d.UserData), LargeUserData)}
}
