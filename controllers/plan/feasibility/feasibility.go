package feasibility

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/presentation"
)

// Kinds of objects that a finding is about.
const (
	KindNodeType     = "NodeType"
	KindNodeProvider = "NodeProvider"
)

// fieldImage is the NodeType's reference to the OSImage.
const fieldImage = "spec.osImageRef"

// Inputs are what shapes the nodes of a NodeType.
type Inputs struct {
	// NodeType that is judged.
	NodeType *v1alpha1.NodeType
	// Image and Provider that it names; nil: they do not exist, and what needs them is not judged.
	Image    *v1alpha1.OSImage
	Provider *v1alpha1.NodeProvider
	// Resolve makes the plan of the nodes; nil: presentation.Resolve.
	Resolve presentation.Resolver
	// Pinned is the plan that nodes of this NodeType are made from already, whatever Resolve would say; nil: there is none.
	Pinned *v1alpha1.NodePlan
}

// Finding is one thing about one field.
type Finding struct {
	// Kind and Name of the object that the field is of: the NodeType, or its NodeProvider.
	Kind, Name string
	// Field is its path in the object: spec.gpu.presentation.mig.layout[0].profiles.
	Field string
	// Reason of the NodeType's condition; empty for what is no refusal.
	Reason string
	// Rule that is broken, or that warns: mig/placement.
	Rule string
	// Message says of the field what was expected and seen, and what would fit. It quotes no user data, which may be secret.
	Message string
}

// String is where and what, in one sentence. The NodeType itself is not named: whoever reads it looks at one.
func (f Finding) String() string {
	text := f.Field + ": " + f.Message
	if f.Kind != KindNodeType {
		text = f.Kind + " " + f.Name + ": " + text
	}
	return text
}

// Own says that the NodeType alone shows it: no other OSImage or NodeProvider of that name would mend it.
func (f Finding) Own() bool {
	domain, _, _ := strings.Cut(f.Rule, "/")
	if f.Kind != KindNodeType || f.Field == fieldImage || slices.Contains([]string{"image", "provider", "reference"}, domain) {
		return false
	}
	return !slices.Contains([]string{
		v1alpha1.ReasonDriverMissing, v1alpha1.ReasonDriverTooOld, v1alpha1.ReasonKernelArgumentMissing, v1alpha1.ReasonFormatUnsupported,
	}, f.Reason)
}

// Judgement is all that is known before a machine is touched.
type Judgement struct {
	// Missing are references to what does not exist.
	Missing []Finding
	// Refusals keep the NodeType from making nodes.
	Refusals []Finding
	// Warnings are accepted and not certain, or not wise.
	Warnings []Finding
	// Plan of the nodes; empty where the image is missing or the presentation is refused.
	Plan v1alpha1.NodePlan
}

// Err is an *Impossible with the refusals; nil: there are none.
func (j Judgement) Err() error {
	if len(j.Refusals) == 0 {
		return nil
	}
	return &Impossible{Findings: j.Refusals}
}

// Impossible is a NodeType that can make no nodes.
type Impossible struct {
	// Findings in the order in which they were found; at least one.
	Findings []Finding
}

// Error says every finding with its rule.
func (i *Impossible) Error() string {
	parts := make([]string, len(i.Findings))
	for n, f := range i.Findings {
		parts[n] = f.String() + " (rule " + f.Rule + ")"
	}
	return strings.Join(parts, "; ")
}

// Judge judges all of it.
func Judge(in Inputs) Judgement {
	j := &judge{Inputs: in}
	j.references()
	j.provider()
	if in.Image != nil {
		j.node()
	}
	return j.Judgement
}

type judge struct {
	Inputs
	Judgement
}

// of makes a finding about a field of the NodeType.
func (j *judge) of(field, reason, rule, format string, args ...any) Finding {
	return Finding{Kind: KindNodeType, Name: j.NodeType.Name, Field: field, Reason: reason, Rule: rule, Message: fmt.Sprintf(format, args...)}
}

func (j *judge) refuse(f ...Finding) { j.Refusals = append(j.Refusals, f...) }

func (j *judge) references() {
	spec := j.NodeType.Spec
	if j.Provider == nil {
		j.Missing = append(j.Missing, j.of("spec.providerRef", v1alpha1.ReasonProviderNotFound, "reference/missing",
			"the NodeProvider %s does not exist: create it", spec.ProviderRef.Name))
	}
	if j.Image == nil {
		j.Missing = append(j.Missing, j.of(fieldImage, v1alpha1.ReasonOSImageNotFound, "reference/missing",
			"the OSImage %s does not exist: create it", spec.OSImageRef.Name))
	}
}

// formats that each kind of provider writes.
var formats = []struct {
	kind  string
	is    func(v1alpha1.NodeProviderSpec) bool
	takes []v1alpha1.ImageFormat
}{
	{"redfish", func(p v1alpha1.NodeProviderSpec) bool { return p.Redfish != nil }, []v1alpha1.ImageFormat{v1alpha1.FormatRaw, v1alpha1.FormatRawGzip, v1alpha1.FormatRawZstd}},
	{"metal3", func(p v1alpha1.NodeProviderSpec) bool { return p.Metal3 != nil }, []v1alpha1.ImageFormat{v1alpha1.FormatRaw, v1alpha1.FormatQCOW2}},
}

// provider judges whether it is served, and whether it writes what the image is.
func (j *judge) provider() {
	if j.Provider == nil {
		return
	}
	if j.Provider.Spec.Ironic != nil {
		j.refuse(j.of("spec.providerRef", v1alpha1.ReasonProviderUnsupported, "provider/unsupported",
			"the NodeProvider %s is of the kind ironic, which this version does not serve: use redfish or metal3", j.Provider.Name))
		return
	}
	if j.Image == nil {
		return
	}
	format := j.Image.Spec.Format
	var kind string
	var others []string
	for _, f := range formats {
		takes := slices.Contains(f.takes, format)
		if f.is(j.Provider.Spec) {
			if takes {
				return
			}
			kind = f.kind
		} else if takes {
			others = append(others, f.kind)
		}
	}
	j.refuse(j.of(fieldImage, v1alpha1.ReasonFormatUnsupported, "image/format", "the OSImage %s has the format %s, which the %s provider %s cannot write; %s can",
		j.Image.Name, format, kind, j.Provider.Name, strings.Join(others, ", ")))
}

// Documents are what every node's documents follow from. Machine, host and join are the caller's to add.
func (in Inputs) Documents(plan v1alpha1.NodePlan) cloudinit.Input {
	own, image := in.NodeType.Spec, in.Image.Spec
	out := cloudinit.Input{Kind: image.UserData, OS: image.OS.ID, KernelArguments: image.KernelArguments, Plan: plan, Gate: own.Gate.Key()}
	if in.Provider != nil {
		name, spec := KindNodeProvider+" "+in.Provider.Name, in.Provider.Spec
		out.Network, out.SSHKeys = spec.Network, slices.Clone(spec.SSHKeys)
		out.Layers = append(out.Layers, cloudinit.Layer{Name: name, Text: spec.UserData})
		out.Properties = append(out.Properties, properties.Level{Name: name, Values: spec.Properties})
	}
	name := KindNodeType + " " + in.NodeType.Name
	out.Layers = append(out.Layers, cloudinit.Layer{Name: name, Text: own.UserData})
	out.Properties = append(out.Properties, properties.Level{Name: name, Values: own.Properties})
	for _, key := range own.SSHKeys {
		if !slices.Contains(out.SSHKeys, key) {
			out.SSHKeys = append(out.SSHKeys, key)
		}
	}
	return out
}
