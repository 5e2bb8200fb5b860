package cloudinit

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
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
	// OS is the image's operating system, as ID of its os-release; only Ignition asks for it.
	OS string
	// KernelArguments are baked into the image; only Ignition asks for them, and sets what is missing.
	KernelArguments []string
	// Layers are people's user data, the farthest first.
	Layers []Layer
	// Properties of NodeProvider, NodeType and Machine, of which a later level wins. They may add a last layer, SSH keys
	// and the network.
	Properties []properties.Level
	// SSHKeys are authorized for the image's default user.
	SSHKeys []string
	// Plan is what the presentation must tell the operating system.
	Plan v1alpha1.NodePlan
	// Machine that the node is.
	Machine MachineInput
	// Host that the machine runs on.
	Host HostInput
	// Network of the nodes; nil or empty: DHCP and no resolvers.
	Network *v1alpha1.NetworkSpec
	// Ranges that the host's address must lie in, IP1-IP2,IP3-IP4; empty: any.
	Ranges string
	// NetworkData is an OpenStack network_data document that is taken in place of Network; empty: none.
	NetworkData Layer
	// Node is what kubelet registers with.
	Node NodeInput
	// Gate is the key of the taint that keeps pods off until the verdict; empty: none.
	Gate string
	// Join is how the node joins; nil renders the same without what is secret, for the time after the join.
	Join *TLSBootstrap
	// Secrets are the contents of Plan.SecretFiles. They are asked for only where Join is set.
	Secrets Secrets
}

// Layer is one layer of the users' user data.
type Layer struct {
	// Name of the object that has it: NodeProvider hall-1.
	Name string
	// Property of the object that has it; empty: its userData.
	Property string
	// Text is a #cloud-config document or a script that begins with #!, and with Ignition a butane document; empty or
	// blank: nothing.
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
	// Name of the Machine, its Node and its host name.
	Name string
	// Namespace of the Machine; only templates ask for it.
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
	// BootMAC of the NIC that is configured; empty: the image's own default, which is DHCP.
	BootMAC string
	// IPAddress of that NIC, with or without prefix length; empty: DHCP.
	IPAddress string
	// Gateway of the host; empty: the network's.
	Gateway string
	// Resolvers of the host; empty: the network's.
	Resolvers []string
	// Name of the BareMetalHost. It, Labels and Annotations are for templates alone.
	Name string
	// Labels of the BareMetalHost.
	Labels map[string]string
	// Annotations of the BareMetalHost.
	Annotations map[string]string
}

// vMetal's annotations of a BareMetalHost, for hosts that come from there.
const (
	annotationAddress   = "metal3.vcluster.com/ip-address"
	annotationResolvers = "metal3.vcluster.com/dns-servers"
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

// NodeInput is what kubelet registers the Node with.
type NodeInput struct {
	// Labels of the Node. Those that kubelet may not set on itself are left out: the controllers set them.
	Labels map[string]string
	// Taints of the Node, beside the gate.
	Taints []corev1.Taint
}

// TLSBootstrap joins with a bootstrap token.
type TLSBootstrap = kubelet.TLSBootstrap

// Documents are the documents that a node's first boot reads.
type Documents struct {
	// UserData is a #cloud-config, a MIME message of one and people's scripts, or an Ignition configuration. It holds the
	// bootstrap token and the contents of Secrets while Input.Join is set: secret.
	UserData []byte
	// NetworkData is an OpenStack network_data.json; nil: none, the image's default holds.
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
