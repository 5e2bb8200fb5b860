package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// Reasons of a Fit, beside LabelsDiffer and OtherZone.
const (
	// Fitting means that the host belongs to the NodeType.
	Fitting Reason = "Fitting"
	// OtherProvider means that the NodeType's NodeProvider has its hosts in another namespace, or does not exist.
	OtherProvider Reason = "OtherProvider"
	// HardwareDiffers means that the NodeType selects the host, but inspection found other GPUs than the NodeType promises. Such a host
	// is claimed like any other, because the labels decide, and its verdict would fail.
	HardwareDiffers Reason = "HardwareDiffers"
)

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
	namespaces := make(map[string]string, len(providers))
	for i := range providers {
		namespaces[providers[i].Name] = providers[i].Spec.HostNamespace
	}
	fits := make([]Fit, 0, len(nodeTypes))
	for i := range nodeTypes {
		fits = append(fits, compareWithNodeType(host, &nodeTypes[i], namespaces))
	}
	slices.SortFunc(fits, func(a, b Fit) int { return cmp.Compare(a.NodeType, b.NodeType) })
	return fits
}

func compareWithNodeType(host HostFacts, nodeType *v1alpha1.NodeType, namespaces map[string]string) Fit {
	spec := &nodeType.Spec
	newFit := func(reason Reason, format string, args ...any) Fit {
		return Fit{NodeType: nodeType.Name, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	namespace, known := namespaces[spec.ProviderRef.Name]
	if !known {
		return newFit(OtherProvider, "cannot be found by NodeProvider %s, which does not exist", spec.ProviderRef.Name)
	}
	if namespace != host.Host.Namespace {
		return newFit(OtherProvider, "is in namespace %s, and NodeProvider %s has its hosts in %s", host.Host.Namespace, spec.ProviderRef.Name, namespace)
	}
	if message := selectorMismatch(spec.HostSelector, host.Host.Labels); message != "" {
		return newFit(LabelsDiffer, "%s", message)
	}
	if zone := checkZone(Request{Zone: spec.Zone}, host); zone.Reason != "" {
		return newFit(zone.Reason, "%s", zone.Message)
	}
	if message := gpuMismatch(spec.GPU, host.Record); message != "" {
		return newFit(HardwareDiffers, "%s", message)
	}
	return newFit(Fitting, "fits")
}

// selectorMismatch names the first label that the selector does not match. It is empty when the selector selects the labels.
func selectorMismatch(selector metav1.LabelSelector, have map[string]string) string {
	compiled, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil || compiled.Empty() {
		return "cannot be selected by a hostSelector that selects nothing"
	}
	requirements, _ := compiled.Requirements()
	for i := range requirements {
		r := &requirements[i]
		if r.Matches(labels.Set(have)) {
			continue
		}
		if value, isSet := have[r.Key()]; isSet {
			return fmt.Sprintf("has the label %s=%s, and %s is asked for", r.Key(), value, v1alpha1.Truncate(r.String(), maxQuoted))
		}
		return fmt.Sprintf("has no label %s, and %s is asked for", r.Key(), v1alpha1.Truncate(r.String(), maxQuoted))
	}
	return ""
}

// gpuMismatch says how the GPUs that inspection found differ from those that are promised. It is empty when they do not differ, when the
// host was not inspected, or when the catalogue does not have the promised model.
func gpuMismatch(want *v1alpha1.GPUSpec, record *v1alpha1.HostRecord) string {
	if want == nil || record == nil || record.Status.Inventory == nil {
		return ""
	}
	if _, err := catalogue.Lookup(want.Vendor, want.Model); err != nil {
		return ""
	}
	found := record.Status.Inventory.GPUs
	count := int32(0)
	// One model may be sold under several PCI ids.
	same := !slices.ContainsFunc(found, func(g v1alpha1.GPUInventory) bool { count += g.Count; return g.Model != want.Model })
	if same && count == want.Count {
		return ""
	}
	return fmt.Sprintf("is selected by its labels but has %s, and %d %s are promised: correct the labels or the hostSelector", gpuNames(found), want.Count, want.Model)
}

// gpuNames names GPUs as in 8 H100-SXM5-80GB. A GPU that the catalogue does not have is named by its PCI id.
func gpuNames(found []v1alpha1.GPUInventory) string {
	var names []string
	for _, g := range found {
		name := cmp.Or(g.Model, "GPUs with the PCI id "+g.VendorID+":"+g.DeviceID+", which is not in the catalogue")
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
