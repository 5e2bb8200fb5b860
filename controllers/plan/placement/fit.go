package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// Fitting is the Reason of a host that fits a NodeType.
const Fitting Reason = "Fitting"

// Fit reports whether a host belongs to a NodeType. It does not report whether the host is free: Choose and Count do.
type Fit struct {
	// NodeType is the name of the NodeType.
	NodeType string
	// Reason is Fitting, or why the host does not fit.
	Reason Reason
	// Message continues a sentence that begins with the name of the host.
	Message string
}

// IsFitting reports whether the host fits.
func (f Fit) IsFitting() bool { return f.Reason == Fitting }

// CompareWithNodeTypes compares a host with every NodeType and returns one Fit for each, by name. providers are all NodeProviders.
func CompareWithNodeTypes(host HostFacts, nodeTypes []v1alpha1.NodeType, providers []v1alpha1.NodeProvider) []Fit {
	fits := make([]Fit, 0, len(nodeTypes))
	for i := range nodeTypes {
		name, spec := nodeTypes[i].Name, nodeTypes[i].Spec
		at := slices.IndexFunc(providers, func(p v1alpha1.NodeProvider) bool { return p.Name == spec.ProviderRef.Name })
		if at < 0 {
			fits = append(fits, Fit{NodeType: name, Reason: OtherProvider, Message: fmt.Sprintf("cannot be found by NodeProvider %s, which does not exist", spec.ProviderRef.Name)})
			continue
		}
		result := CheckFit(host, spec, providers[at].Spec)
		fits = append(fits, Fit{NodeType: name, Reason: result.Reason, Message: result.Message})
	}
	slices.SortFunc(fits, func(a, b Fit) int { return cmp.Compare(a.NodeType, b.NodeType) })
	return fits
}

// CheckFit returns Fitting, or why a host does not fit a NodeType of the provider: by namespace, labels, zone, and the GPUs and other hardware that
// inspection found. It is the one rule by which hosts are chosen, counted and listed.
func CheckFit(host HostFacts, nodeType v1alpha1.NodeTypeSpec, provider v1alpha1.NodeProviderSpec) Evaluation {
	return checkFit(host, nodeType, provider, compileSelector(nodeType.HostSelector))
}

// checkFit is CheckFit with the compiled hostSelector, so that it is compiled once for all hosts.
func checkFit(host HostFacts, nodeType v1alpha1.NodeTypeSpec, provider v1alpha1.NodeProviderSpec, selector labels.Requirements) Evaluation {
	result := func(reason Reason, format string, args ...any) Evaluation {
		return Evaluation{Name: host.Host.Name, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	if host.Host.Namespace != provider.HostNamespace {
		return result(OtherProvider, "is in namespace %s, and NodeProvider %s has its hosts in %s", host.Host.Namespace, nodeType.ProviderRef.Name, provider.HostNamespace)
	}
	if message := selectorMismatch(selector, host, provider); message != "" {
		return result(LabelsDiffer, "%s", message)
	}
	if zone := host.Host.Labels[v1alpha1.LabelZone]; nodeType.Zone != "" && zone != nodeType.Zone {
		return result(OtherZone, "is in zone %q, not %q", zone, nodeType.Zone)
	}
	if message := gpuMismatch(nodeType.GPU, host, provider); message != "" {
		return result(HardwareDiffers, "%s", message)
	}
	if message := missingHardware(nodeType.Hardware, host.Record); message != "" {
		return result(HardwareInsufficient, "%s", message)
	}
	return result(Fitting, "fits")
}

// compileSelector returns the requirements of a selector; none: it selects nothing.
func compileSelector(selector metav1.LabelSelector) labels.Requirements {
	compiled, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil
	}
	requirements, _ := compiled.Requirements()
	return requirements
}

// selectorMismatch names the first label that the selector does not match. It is empty when the selector selects the host. A GPU label that
// is absent because nobody could tell its value does not count where an agent looks before it writes, which is not so for metal3.
func selectorMismatch(selector labels.Requirements, host HostFacts, provider v1alpha1.NodeProviderSpec) string {
	if len(selector) == 0 {
		return "cannot be selected by a hostSelector that selects nothing"
	}
	have := host.Host.Labels
	for i := range selector {
		r := &selector[i]
		value, isSet := have[r.Key()]
		switch {
		case r.Matches(labels.Set(have)), !isSet && provider.Metal3 == nil && inventory.IsLabelUnknown(host.Record, r.Key()):
		case isSet:
			return fmt.Sprintf("has the label %s=%s, and %s is asked for", r.Key(), value, input.Line(r.String(), maxQuoted))
		default:
			return fmt.Sprintf("has no label %s, and %s is asked for", r.Key(), input.Line(r.String(), maxQuoted))
		}
	}
	return ""
}

// gpuMismatch says how the GPUs that inspection found differ from those that are promised. It is empty when they do not differ, when their
// number is unknown, or when the catalogue does not have the promised model. A GPU whose model nobody could tell may be of any model.
func gpuMismatch(want *v1alpha1.GPUSpec, host HostFacts, provider v1alpha1.NodeProviderSpec) string {
	if want == nil {
		return ""
	}
	if _, err := catalogue.Lookup(want.Vendor, want.Model); err != nil {
		return ""
	}
	record := host.Record
	switch {
	case provider.Metal3 != nil:
		return labelMismatch(want, host.Host.Labels)
	case record == nil || !record.Status.Inventory.IsGPUCountKnown():
		return ""
	}
	found := record.Status.Inventory.GPUs
	count := int32(0)
	// One model may be sold under several PCI ids.
	same := true
	for _, g := range found {
		count += g.Count
		same = same && (g.Model == want.Model || g.Model == "" && g.DeviceID == "")
	}
	if same && count == want.Count {
		return ""
	}
	return fmt.Sprintf("is selected by its labels but has %s, and %d %s are promised: correct the labels or the hostSelector", gpuNames(found), want.Count, want.Model)
}

// labelMismatch is gpuMismatch of a metal3 provider's host, which has no HostRecord: what is known of its GPUs is in its labels. Ingot writes them where
// its HardwareData names the GPUs, and people do elsewhere. A label that is not there says nothing.
func labelMismatch(want *v1alpha1.GPUSpec, labels map[string]string) string {
	model, count := labels[v1alpha1.LabelGPUModel], labels[v1alpha1.LabelGPUCount]
	isSame := (model == "" || model == want.Model) && (count == "" || count == strconv.Itoa(int(want.Count)))
	if isSame {
		return ""
	}
	return fmt.Sprintf("is selected by other labels but its labels of GPUs say %s, and %d %s are promised: correct the labels or the hostSelector",
		LabelledGPUs(labels), want.Count, want.Model)
}

// LabelledGPUs returns what the labels of a host say about its GPUs, as in 8 x H100-SXM5-80GB; empty: nothing.
func LabelledGPUs(labels map[string]string) string {
	model, count := labels[v1alpha1.LabelGPUModel], labels[v1alpha1.LabelGPUCount]
	switch {
	case count == "":
		return model
	case model == "":
		return count + " GPUs"
	}
	return count + " x " + model
}

// missingHardware says what the host lacks of what spec.hardware requires, as far as inspection found it.
func missingHardware(required *v1alpha1.HardwareRequirements, record *v1alpha1.HostRecord) string {
	if required == nil || record == nil {
		return ""
	}
	missing := inventory.MissingHardware(required, record.Status.Inventory)
	if len(missing) == 0 {
		return ""
	}
	return "lacks hardware that the NodeType requires: " + strings.Join(missing, "; ") + "; inspect the host again when that is repaired (annotation inspect.metal3.io)"
}

// gpuNames names GPUs as in 8 H100-SXM5-80GB. A GPU that the catalogue does not have is named by its PCI id.
func gpuNames(found []v1alpha1.GPUInventory) string {
	var names []string
	for _, g := range found {
		name := g.Model
		switch {
		case name == "" && g.DeviceID == "":
			name = "GPUs of an unknown model"
		case name == "":
			name = "GPUs with the PCI id " + g.VendorID + ":" + g.DeviceID + ", which is not in the catalogue"
		}
		names = append(names, fmt.Sprintf("%d %s", g.Count, name))
	}
	return cmp.Or(strings.Join(names, " and "), "no GPU")
}

// FitSummary returns one line: the NodeTypes that a host fits, or the reason why it fits none. It leaves out the NodeTypes of other
// providers where it can name a better reason.
func FitSummary(fits []Fit) string {
	var fitting, refusals []string
	for _, f := range fits {
		switch {
		case f.IsFitting():
			fitting = append(fitting, f.NodeType)
		case f.Reason != OtherProvider:
			refusals = append(refusals, f.NodeType+": "+f.Message)
		}
	}
	switch {
	case len(fitting) > 0:
		return strings.Join(fitting, ", ")
	case len(fits) == 0:
		return "none: there is no NodeType"
	case len(refusals) == 0:
		return fmt.Sprintf("none: no NodeType takes hosts from here (%s %s)", fits[0].NodeType, fits[0].Message)
	}
	return "none: " + strings.Join(refusals, "; ")
}
