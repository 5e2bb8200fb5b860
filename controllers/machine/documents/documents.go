package documents

import (
	"strconv"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
)

// layerNames are those of NodeTypeRevision.spec.userData and properties, in their order.
var layerNames = []string{"NodeProvider", "NodeType"}

// Node is what a node's documents follow from.
type Node struct {
	// Machine that the node is.
	Machine *v1alpha1.Machine
	// NodeType of the Machine; of it only what no revision holds is asked for.
	NodeType *v1alpha1.NodeType
	// Revision that is installed, and its Image.
	Revision *v1alpha1.NodeTypeRevision
	// Plan of the rendering that is installed.
	Plan v1alpha1.NodePlan
	// Image of the Revision.
	Image *v1alpha1.OSImage
	// Host that the Machine has; nil: none yet.
	Host *metal3.BareMetalHost
}

// Render makes the documents; a nil join leaves out what is secret, and needs no secrets. Errors quote no user data.
func (n Node) Render(join *cloudinit.TLSBootstrap, secrets cloudinit.Secrets) (cloudinit.Documents, error) {
	spec := n.Revision.Spec
	in := cloudinit.Input{
		Kind: spec.Image.UserData, OS: n.Image.Spec.OS.ID, KernelArguments: n.Image.Spec.KernelArguments,
		SSHKeys: spec.SSHKeys, Plan: n.Plan, Network: spec.Network, Join: join, Secrets: secrets, Properties: n.properties(),
		Machine: cloudinit.MachineInput{Name: n.Machine.Name, Namespace: n.Machine.Namespace, UID: string(n.Machine.UID), Revision: n.Revision.Name, Attempt: n.Machine.Status.Attempt},
		Node:    cloudinit.NodeInput{Labels: NodeLabels(n.NodeType, string(n.Machine.UID), n.Revision.Name), Taints: NodeTaints(n.NodeType)},
		Gate:    n.NodeType.Spec.Gate.Key(),
	}
	for i, text := range spec.UserData {
		in.Layers = append(in.Layers, cloudinit.Layer{Name: layerName("layer ", i), Text: text})
	}
	if n.Host != nil {
		in.Host = cloudinit.HostOf(n.Host.Name, n.Host.Spec.BootMACAddress, n.Host.Labels, n.Host.Annotations)
	}
	return cloudinit.Render(in)
}

// properties are those of the revision and the Machine's own, whose author is a tenant.
func (n Node) properties() []properties.Level {
	var out []properties.Level
	for i, values := range n.Revision.Spec.Properties {
		out = append(out, properties.Level{Name: layerName("level ", i), Values: values})
	}
	if len(n.Machine.Spec.Properties) > 0 {
		out = append(out, properties.Level{Name: "Machine " + n.Machine.Name, Values: n.Machine.Spec.Properties, Tenant: true})
	}
	return out
}

func layerName(kind string, i int) string {
	if i < len(layerNames) {
		return layerNames[i]
	}
	return kind + strconv.Itoa(i+1)
}

// Warnings are what people must know of documents that were made and of the presentation that they carry out.
func Warnings(plan v1alpha1.NodePlan, d cloudinit.Documents) []string {
	out := d.Warnings()
	for _, w := range plan.Warnings {
		out = append(out, w.Message+" (rule "+w.Rule+")")
	}
	return out
}
