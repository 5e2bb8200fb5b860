package feasibility

import (
	"errors"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// plan is what a node is made from, with what the NodeType declares beside it.
func (j *judge) plan() (v1alpha1.NodePlan, error) {
	nodeType := j.NodeType.Spec
	if j.Pinned == nil {
		resolve := j.Resolve
		if resolve == nil {
			resolve = presentation.Resolve
		}
		return resolve(spec.Request{GPU: nodeType.GPU, Image: j.Image.Spec, Resources: nodeType.Resources})
	}
	plan, err := *j.Pinned, error(nil)
	plan.Expectation, err = presentation.WithDeclaredResources(plan.Expectation, nodeType.Resources)
	return plan, err
}

// node asks presentation and cloudinit about the nodes.
func (j *judge) node() {
	plan, err := j.plan()
	var refusal *spec.Refusal
	switch {
	case errors.As(err, &refusal):
		j.refuse(j.refusalFinding(refusal))
	case err != nil:
		j.refuse(j.of("spec.gpu", v1alpha1.ReasonPresentationInvalid, "gpu/invalid", "%v", err))
	}
	if err != nil {
		// What people wrote is judged all the same, so that nobody mends one thing only to hear of the next.
		if err := cloudinit.Check(j.Documents(v1alpha1.NodePlan{})); err != nil {
			j.refuse(j.documents(err)...)
		}
		return
	}
	j.Plan = plan
	for _, w := range plan.Warnings {
		j.Warnings = append(j.Warnings, j.of("spec.gpu", "", w.Rule, "%s", w.Message))
	}
	documents := j.Documents(plan)
	if err := cloudinit.Check(documents); err != nil {
		j.refuse(j.documents(err)...)
		return
	}
	// A node of no particular Machine and host shows how large the documents become. Where a template wants more than that,
	// only the Machine's own controller can tell.
	documents.Machine.Name = j.NodeType.Name
	rendered, err := cloudinit.Render(documents)
	var large *cloudinit.TooLarge
	if errors.As(err, &large) {
		j.refuse(j.of("spec.userData", v1alpha1.ReasonUserDataInvalid, "user-data/too-large", "%v", large))
		return
	}
	for _, w := range rendered.Warnings() {
		j.Warnings = append(j.Warnings, j.of("spec.userData", "", "user-data/large", "%s", w))
	}
}

// refusalFinding is the finding of a refusal. What the OSImage has is told at the NodeType's reference to it.
func (j *judge) refusalFinding(r *spec.Refusal) Finding {
	if r.Field.IsInOSImage() {
		return j.of(fieldImage, r.Reason, r.Rule, "%s: %s", r.Field, r.Message)
	}
	return j.of(r.Field.Path, r.Reason, r.Rule, "%s", r.Message)
}

// documents names the fields that an error of cloudinit.Check is about.
func (j *judge) documents(err error) []Finding {
	var invalid *cloudinit.Invalid
	var conflict *cloudinit.Conflict
	var said *properties.Invalid
	var network *cloudinit.NetworkInvalid
	var lacking *cloudinit.Unsupported
	switch {
	case errors.As(err, &invalid):
		return j.layers("user-data/invalid", invalid.Findings)
	case errors.As(err, &conflict):
		return j.layers("user-data/conflict", conflict.Findings)
	case errors.As(err, &said):
		var out []Finding
		for _, f := range said.Findings {
			out = append(out, j.layer(f.Level, "spec.properties["+f.Key+"]", "properties/invalid", f.Message))
		}
		return out
	case errors.As(err, &network) && j.Provider != nil:
		return []Finding{j.layer(KindNodeProvider+" "+j.Provider.Name, "spec.network", "network/invalid", network.Error())}
	case errors.As(err, &lacking):
		return []Finding{j.of(fieldImage, v1alpha1.ReasonUserDataInvalid, "user-data/unsupported", "%v", lacking)}
	default:
		return []Finding{j.of("spec.userData", v1alpha1.ReasonUserDataInvalid, "user-data/invalid", "%v", err)}
	}
}

func (j *judge) layers(rule string, all []cloudinit.Finding) []Finding {
	var out []Finding
	for _, f := range all {
		message := f.Message
		if f.Path != "" {
			message = f.Path + ": " + message
		}
		field := "spec.userData"
		if f.Property != "" {
			field = "spec.properties[" + f.Property + "]"
		}
		out = append(out, j.layer(f.Layer, field, rule, message))
	}
	return out
}

// layer makes a finding about a field of the object that gives the layer of that name.
func (j *judge) layer(name, field, rule, message string) Finding {
	f := j.of(field, v1alpha1.ReasonUserDataInvalid, rule, "%s", message)
	if p := j.Provider; p != nil && name == KindNodeProvider+" "+p.Name {
		f.Kind, f.Name = KindNodeProvider, p.Name
	}
	return f
}
