package machine

import (
	"fmt"
	"strconv"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/presentation"
)

// layerNames are those of NodeTypeRevision.spec.userData and properties, in their order.
var layerNames = []string{"NodeProvider", "NodeType"}

// checkRendering finds out, before a host is claimed, drained or installed, what the documents ask of the tenant, and that
// they cannot be made.
func (r *Reconciler) checkRendering(v *view) {
	v.check(v.next, &v.facts.Next)
	switch v.machine.Status.Phase {
	case "", v1alpha1.MachinePending, v1alpha1.MachineClaiming, v1alpha1.MachineProvisioning, v1alpha1.MachineDraining:
		v.check(v.current, &v.facts.Revision)
	}
}

func (v *view) check(e edition, f *lifecycle.Revision) {
	if f.Problem != "" || e.revision == nil {
		return
	}
	plan, err := v.resolve(e)
	if err == nil {
		f.DRA = len(plan.Expectation.Slices) > 0
		_, err = v.render(e, nil)
	}
	if err != nil {
		f.Problem = err.Error()
	}
}

func (v *view) resolve(e edition) (presentation.Plan, error) {
	return presentation.Resolve(presentation.Request{GPU: e.revision.Spec.GPU, Image: e.image.Spec, Resources: v.nodeType.Spec.Resources})
}

// render makes the node's documents; a nil join leaves out what is secret. Errors quote no user data.
func (v *view) render(e edition, join *cloudinit.TLSBootstrap) (cloudinit.Documents, error) {
	plan, err := v.resolve(e)
	if err != nil {
		return cloudinit.Documents{}, err
	}
	spec := e.revision.Spec
	in := cloudinit.Input{
		Kind: spec.Image.UserData, OS: e.image.Spec.OS.ID, KernelArguments: e.image.Spec.KernelArguments,
		SSHKeys: spec.SSHKeys, Plan: plan, Network: spec.Network, Join: join, Properties: v.properties(spec),
		Machine: cloudinit.MachineInput{Name: v.machine.Name, Namespace: v.machine.Namespace, UID: string(v.machine.UID), Revision: e.revision.Name, Attempt: v.machine.Status.Attempt},
		Node:    cloudinit.NodeInput{Labels: v.nodeLabels(e.revision.Name), Taints: v.nodeTaints()},
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
		in.Host = cloudinit.HostOf(v.host.Name, v.host.Spec.BootMACAddress, v.host.Labels, v.host.Annotations)
	}
	return cloudinit.Render(in)
}

// properties are those of the revision and the Machine's own. Only who may write NodeTypes writes templates.
func (v *view) properties(spec v1alpha1.NodeTypeRevisionSpec) []properties.Level {
	var out []properties.Level
	for i, values := range spec.Properties {
		level := properties.Level{Name: "level " + strconv.Itoa(i+1), Values: values}
		if i < len(layerNames) {
			level.Name = layerNames[i]
		}
		out = append(out, level)
	}
	if len(v.machine.Spec.Properties) > 0 {
		out = append(out, properties.Level{Name: "Machine " + v.machine.Name, Values: v.machine.Spec.Properties, Tenant: true})
	}
	return out
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
