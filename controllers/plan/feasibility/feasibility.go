package feasibility

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/containerd"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/fragment"
	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// Kinds of objects that a finding is about.
const (
	KindNodeType     = "NodeType"
	KindNodeProvider = "NodeProvider"
)

// fieldImage is the NodeType's reference to the OSImage.
const fieldImage = "spec.osImageRef"

// Inputs are the objects that the nodes of a NodeType depend on.
type Inputs struct {
	// NodeType is the NodeType to check.
	NodeType *v1alpha1.NodeType
	// Image and Provider are the objects that it names. They are nil when they do not exist; what needs them is then not checked.
	Image    *v1alpha1.OSImage
	Provider *v1alpha1.NodeProvider
	// Resolve returns the plan of the nodes. When it is nil, presentation.Resolve is used.
	Resolve presentation.Resolver
	// Pinned is the plan that nodes of this NodeType have already, and is used instead of Resolve. It is nil when there is none.
	Pinned *v1alpha1.NodePlan
}

// Finding is one result about one field.
type Finding struct {
	// Kind and Name are those of the object that has the field: the NodeType or its NodeProvider.
	Kind, Name string
	// Field is the path of the field, as in spec.gpu.presentation.mig.layout[0].profiles.
	Field string
	// Reason is a reason of the NodeType's condition. It is empty when the finding is no refusal.
	Reason string
	// Rule is the rule that is broken or that warns, as in mig/placement.
	Rule string
	// Message says what was expected of the field, what it is, and what would be valid. It quotes no user data, which may be secret.
	Message string
}

// String returns field and message as one sentence. It does not name the NodeType, because whoever reads it is looking at that.
func (f Finding) String() string {
	text := f.Field + ": " + f.Message
	if f.Kind != KindNodeType {
		text = f.Kind + " " + f.Name + ": " + text
	}
	return text
}

// IsOfNodeTypeAlone reports whether the finding depends on the NodeType alone, so that no change of its OSImage or NodeProvider would resolve
// it.
func (f Finding) IsOfNodeTypeAlone() bool {
	domain, _, _ := strings.Cut(f.Rule, "/")
	if f.Kind != KindNodeType || f.Field == fieldImage || slices.Contains([]string{"image", "provider", "reference"}, domain) {
		return false
	}
	return !slices.Contains([]string{
		v1alpha1.ReasonDriverMissing, v1alpha1.ReasonDriverTooOld, v1alpha1.ReasonKernelArgumentMissing, v1alpha1.ReasonFormatUnsupported,
	}, f.Reason)
}

// Result is everything that is known before a machine is changed.
type Result struct {
	// Missing are the references to objects that do not exist.
	Missing []Finding
	// Refusals are the findings that prevent the NodeType from having nodes.
	Refusals []Finding
	// Warnings are about values that are accepted, but may not work or are not recommended.
	Warnings []Finding
	// Plan is the plan of the nodes. It is empty when the image is missing or the presentation is refused.
	Plan v1alpha1.NodePlan
}

// Err returns an *Impossible with the refusals, or nil when there are none.
func (j Result) Err() error {
	if len(j.Refusals) == 0 {
		return nil
	}
	return &Impossible{Findings: j.Refusals}
}

// Impossible is the error of a NodeType that can have no nodes.
type Impossible struct {
	// Findings are in the order in which they were found. There is at least one.
	Findings []Finding
}

// Error returns every finding with its rule.
func (i *Impossible) Error() string {
	parts := make([]string, len(i.Findings))
	for n, f := range i.Findings {
		parts[n] = f.String() + " (rule " + f.Rule + ")"
	}
	return strings.Join(parts, "; ")
}

// Check checks the NodeType with its OSImage and its NodeProvider.
func Check(in Inputs) Result {
	j := &checker{Inputs: in}
	j.checkReferences()
	j.checkProvider()
	if in.Image != nil {
		j.checkKubelet()
		j.checkNode()
	}
	return j.Result
}

// checker collects the Result of one check.
type checker struct {
	Inputs
	Result
}

// finding returns a finding about a field of the NodeType.
func (j *checker) finding(field, reason, rule, format string, args ...any) Finding {
	return Finding{Kind: KindNodeType, Name: j.NodeType.Name, Field: field, Reason: reason, Rule: rule, Message: fmt.Sprintf(format, args...)}
}

func (j *checker) refuse(f ...Finding) { j.Refusals = append(j.Refusals, f...) }

func (j *checker) checkReferences() {
	nodeType := j.NodeType.Spec
	if j.Provider == nil {
		j.Missing = append(j.Missing, j.finding("spec.providerRef", v1alpha1.ReasonProviderNotFound, "reference/missing",
			"the NodeProvider %s does not exist: create it", nodeType.ProviderRef.Name))
	}
	if j.Image == nil {
		j.Missing = append(j.Missing, j.finding(fieldImage, v1alpha1.ReasonOSImageNotFound, "reference/missing",
			"the OSImage %s does not exist: create it", nodeType.OSImageRef.Name))
	}
}

// checkProvider checks that the provider can write the format of the image, and can do what the NodeType needs of it.
func (j *checker) checkProvider() {
	if j.Provider == nil {
		return
	}
	kind := providerkind.Of(j.Provider.Spec)
	if !kind.ComparesHardware && j.NodeType.Spec.Hardware != nil {
		j.refuse(j.finding("spec.hardware", v1alpha1.ReasonProviderUnsupported, "provider/hardware",
			"the NodeProvider %s is of the kind %s, whose own agent installs and compares no hardware: remove spec.hardware, or use redfish", j.Provider.Name, kind.Name))
	}
	j.checkErase(kind)
	if j.Image == nil || kind.CanWrite(j.Image.Spec.Format) {
		j.warnOfLiveISO()
		return
	}
	var others []string
	for _, other := range providerkind.All() {
		if other.CanWrite(j.Image.Spec.Format) {
			others = append(others, other.Name)
		}
	}
	j.refuse(j.finding(fieldImage, v1alpha1.ReasonFormatUnsupported, "image/format", "the OSImage %s has the format %s, which the %s provider %s cannot write; %s can",
		j.Image.Name, j.Image.Spec.Format, kind.Name, j.Provider.Name, strings.Join(others, ", ")))
}

// warnOfLiveISO warns of what a live ISO does not have.
func (j *checker) warnOfLiveISO() {
	if j.Image == nil || j.Image.Spec.Format != v1alpha1.FormatLiveISO {
		return
	}
	j.Warnings = append(j.Warnings,
		j.finding(fieldImage, "", "image/not-verified", "the OSImage %s is a live ISO, whose checksum Ironic does not verify: whoever can change the file at its url changes what the servers run", j.Image.Name),
		j.finding(fieldImage, "", "image/not-kept", "the OSImage %s is a live ISO: after a reboot a server has nothing of what it had, and its bootstrap token is used up, so that it joins again only "+
			"when its Machine is rolled or replaced", j.Image.Name))
}

// checkErase refuses a full erase that nobody can prove. Without it: a full erase is asked for so that hosts can go from tenant to tenant, each release takes
// hours, and the host is refused to every other tenant afterwards.
func (j *checker) checkErase(kind providerkind.Kind) {
	erase := j.Provider.Spec.Erase
	j.warnOfForgeableErase(erase)
	if erase == nil || kind.ProvenErase(erase.OnRelease) == erase.OnRelease || erase.AllowMetadataBetweenTenants {
		return
	}
	refused := j.finding("spec.erase.onRelease", v1alpha1.ReasonEraseNotProven, "provider/erase",
		"a full erase by %s has no evidence for each disk, so that it counts as Metadata, after which no host goes to another tenant: "+
			"set spec.erase.allowMetadataBetweenTenants to accept it as it is, set onRelease to Metadata, or use redfish", kind.Name)
	refused.Kind, refused.Name = KindNodeProvider, j.Provider.Name
	j.refuse(refused)
}

// warnOfForgeableErase warns of erases that let no host go to another tenant, where the NodeProvider alone says so.
func (j *checker) warnOfForgeableErase(erase *v1alpha1.ErasePolicy) {
	redfish := j.Provider.Spec.Redfish
	if erase == nil || redfish == nil || erase.OnRelease == v1alpha1.EraseNone || erase.AllowForgeableEraseBetweenTenants {
		return
	}
	why := ""
	switch ways := redfish.Netboot.Ways; {
	case len(ways) == 1 && ways[0] == v1alpha1.BootWayNetwork:
		why = "the agent is booted by Network alone"
	case redfish.InsecureSkipVerify:
		why = "the certificates of BMCs are not verified (insecureSkipVerify)"
	default:
		return
	}
	w := j.finding("spec.erase", "", "provider/erase-forgeable", "%s, so that a neighbour on the provisioning network can report an erase in a server's place: a host goes to no other tenant after one. "+
		"Have spec.redfish.netboot.ways begin with VirtualMedia or PinnedHTTP, by BMCs whose certificates are verified, or accept that risk with spec.erase.allowForgeableEraseBetweenTenants", why)
	w.Kind, w.Name = KindNodeProvider, j.Provider.Name
	j.Warnings = append(j.Warnings, w)
}

// Documents returns the part of cloudinit's input that is the same for every node. The caller adds Machine, host and join.
func (in Inputs) Documents(plan v1alpha1.NodePlan) cloudinit.Input {
	own, image := in.NodeType.Spec, in.Image.Spec
	out := cloudinit.Input{Kind: image.UserData, OS: image.OS.ID, KernelArguments: image.KernelArguments, Plan: plan, Gate: own.Gate.Key(),
		Kubelet: cloudinit.KubeletInput{Version: image.Software.Kubelet, Members: own.KubeletMembers()}}
	var providerKeys []string
	var site *v1alpha1.ContainerdSpec
	if in.Provider != nil {
		name, spec := KindNodeProvider+" "+in.Provider.Name, in.Provider.Spec
		out.Network, providerKeys, site = spec.Network, spec.SSHKeys, spec.Containerd
		out.Layers = append(out.Layers, cloudinit.Layer{Name: name, Text: spec.UserData})
		out.Properties = append(out.Properties, properties.Level{Name: name, Values: spec.Properties})
	}
	name := KindNodeType + " " + in.NodeType.Name
	out.Layers = append(out.Layers, cloudinit.Layer{Name: name, Text: own.UserData})
	out.Properties = append(out.Properties, properties.Level{Name: name, Values: own.Properties})
	out.SSHKeys = v1alpha1.AuthorizedKeys(providerKeys, own.SSHKeys)
	out.Containerd = containerd.NodeOf(image.Software, own.GPU, site)
	return out
}

// nodePlan returns the plan of a node, with the resources that the NodeType declares.
func (j *checker) nodePlan() (v1alpha1.NodePlan, error) {
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

// checkKubelet checks the user's members of KubeletConfiguration against the image's kubelet.
func (j *checker) checkKubelet() {
	for _, f := range fragment.Check(j.NodeType.Spec.KubeletMembers(), j.Image.Spec.Software.Kubelet) {
		field, rule := "spec.kubelet", "kubelet/invalid"
		if f.Path != "" {
			field += "." + f.Path
		}
		if f.OfRelease {
			rule = "image/kubelet"
		}
		j.refuse(j.finding(field, v1alpha1.ReasonKubeletInvalid, rule, "%s", f.Message))
	}
}

// checkNode checks what presentation and cloudinit would make of a node.
func (j *checker) checkNode() {
	plan, err := j.nodePlan()
	var refusal *spec.Refusal
	switch {
	case errors.As(err, &refusal):
		j.refuse(j.refusalFinding(refusal))
	case err != nil:
		j.refuse(j.finding("spec.gpu", v1alpha1.ReasonPresentationInvalid, "gpu/invalid", "%v", err))
	}
	if err != nil {
		// The user data is checked too, so that one check reports everything that must be corrected.
		if err := cloudinit.Check(j.Documents(v1alpha1.NodePlan{})); err != nil {
			j.refuse(j.documentFindings(err)...)
		}
		return
	}
	j.Plan = plan
	for _, w := range plan.Warnings {
		j.Warnings = append(j.Warnings, j.finding("spec.gpu", "", w.Rule, "%s", w.Message))
	}
	documents := j.Documents(plan)
	if w := documents.Containerd.Warning(); w != "" {
		j.Warnings = append(j.Warnings, j.finding(fieldImage, "", "image/containerd", "%s", w))
	}
	if err := cloudinit.Check(documents); err != nil {
		j.refuse(j.documentFindings(err)...)
		return
	}
	// A node without a Machine and a host shows how large the documents become. Where a template needs those, only the machine controller
	// can check the size.
	documents.Machine.Name = j.NodeType.Name
	rendered, err := cloudinit.Render(documents)
	var large *cloudinit.TooLarge
	if errors.As(err, &large) {
		j.refuse(j.finding("spec.userData", v1alpha1.ReasonUserDataInvalid, "user-data/too-large", "%v", large))
		return
	}
	for _, w := range rendered.Warnings() {
		j.Warnings = append(j.Warnings, j.finding("spec.userData", "", "user-data/large", "%s", w))
	}
}

// refusalFinding returns the finding for a refusal. A field of the OSImage is reported at the NodeType's reference to it.
func (j *checker) refusalFinding(r *spec.Refusal) Finding {
	if r.Field.IsInOSImage() {
		return j.finding(fieldImage, r.Reason, r.Rule, "%s: %s", r.Field, r.Message)
	}
	return j.finding(r.Field.Path, r.Reason, r.Rule, "%s", r.Message)
}

// documentFindings returns the findings for an error of cloudinit.Check.
func (j *checker) documentFindings(err error) []Finding {
	var invalid *cloudinit.Invalid
	var conflict *cloudinit.Conflict
	var invalidProperties *properties.Invalid
	var invalidNetwork *network.Invalid
	var unsupported *cloudinit.Unsupported
	switch {
	case errors.As(err, &invalid):
		return j.layerFindings("user-data/invalid", invalid.Findings)
	case errors.As(err, &conflict):
		return j.layerFindings("user-data/conflict", conflict.Findings)
	case errors.As(err, &invalidProperties):
		var out []Finding
		for _, f := range invalidProperties.Findings {
			out = append(out, j.layerFinding(f.Level, "spec.properties["+f.Key+"]", "properties/invalid", f.Message))
		}
		return out
	case errors.As(err, &invalidNetwork) && j.Provider != nil:
		return []Finding{j.layerFinding(KindNodeProvider+" "+j.Provider.Name, "spec.network", "network/invalid", invalidNetwork.Error())}
	case errors.As(err, &unsupported):
		return []Finding{j.finding(fieldImage, v1alpha1.ReasonUserDataInvalid, "user-data/unsupported", "%v", unsupported)}
	default:
		return []Finding{j.finding("spec.userData", v1alpha1.ReasonUserDataInvalid, "user-data/invalid", "%v", err)}
	}
}

func (j *checker) layerFindings(rule string, all []cloudinit.Finding) []Finding {
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
		out = append(out, j.layerFinding(f.Layer, field, rule, message))
	}
	return out
}

// layerFinding returns a finding about a field of the object that has the layer of that name.
func (j *checker) layerFinding(name, field, rule, message string) Finding {
	f := j.finding(field, v1alpha1.ReasonUserDataInvalid, rule, "%s", message)
	if p := j.Provider; p != nil && name == KindNodeProvider+" "+p.Name {
		f.Kind, f.Name = KindNodeProvider, p.Name
	}
	return f
}
