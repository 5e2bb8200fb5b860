package machine

import (
	"fmt"
	"strconv"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/presentation"
)

// layerNames are those of NodeTypeRevision.spec.userData, in its order.
var layerNames = []string{"NodeProvider", "NodeType"}

// checkRendering finds out, before a host is claimed or installed, that the documents cannot be made.
func (r *Reconciler) checkRendering(v *view) {
	switch v.machine.Status.Phase {
	case "", v1alpha1.MachinePending, v1alpha1.MachineClaiming, v1alpha1.MachineProvisioning:
	default:
		return
	}
	if v.facts.Revision.Problem != "" || v.revision == nil {
		return
	}
	if _, err := v.render(nil); err != nil {
		v.facts.Revision.Problem = err.Error()
	}
}

// render makes the node's documents; a nil join leaves out what is secret. Errors quote no user data.
func (v *view) render(join *cloudinit.TLSBootstrap) (cloudinit.Documents, error) {
	plan, err := presentation.Resolve(presentation.Request{
		GPU: v.revision.Spec.GPU, Image: v.image.Spec, Resources: v.nodeType.Spec.Resources,
	})
	if err != nil {
		return cloudinit.Documents{}, err
	}
	spec := v.revision.Spec
	in := cloudinit.Input{
		Kind: spec.Image.UserData, SSHKeys: spec.SSHKeys, Plan: plan, Network: spec.Network, Join: join,
		Machine: cloudinit.MachineInput{Name: v.machine.Name, UID: string(v.machine.UID), Revision: v.revision.Name, Attempt: v.machine.Status.Attempt},
		Node:    cloudinit.NodeInput{Labels: v.nodeLabels(), Taints: v.nodeTaints()},
		Gate:    v.nodeType.Spec.Gate.Key(),
	}
	for i, text := range spec.UserData {
		layer := cloudinit.Layer{Name: "layer " + strconv.Itoa(i+1), Text: text}
		if i < len(layerNames) {
			layer.Name = layerNames[i]
		}
		in.Layers = append(in.Layers, layer)
	}
	if v.host != nil {
		in.Host = cloudinit.HostInput{BootMAC: v.host.Spec.BootMACAddress, IPAddress: v.host.Annotations[v1alpha1.AnnotationIPAddress]}
	}
	return cloudinit.Render(in)
}

// join is how the node joins with the token that was observed.
func (v *view) join() (*cloudinit.TLSBootstrap, error) {
	if v.token == nil || v.access == nil || v.tenant == nil || v.tenant.Spec.Join.TLSBootstrap == nil {
		return nil, fmt.Errorf("the bootstrap token or the tenant was lost meanwhile")
	}
	endpoint := v.tenant.Spec.Join.TLSBootstrap.Endpoint
	if endpoint == "" {
		endpoint = v.access.Server
	}
	token := string(v.token.Data[keyTokenID]) + "." + string(v.token.Data[keyTokenSecret])
	return &cloudinit.TLSBootstrap{Endpoint: endpoint, CA: v.access.CA, Token: token}, nil
}
