package placement

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// h100s is a NodeType for free's hosts.
func h100s(name string) v1alpha1.NodeType {
	return v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: "hall-1"}, Zone: "hall-1",
		HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}},
		GPU:          &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8},
	}}
}

// fullWidth makes the NodeType require GPUs at full width.
func fullWidth(_ *HostFacts, n *v1alpha1.NodeType) {
	n.Spec.Hardware = &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
}

// withLanes returns the GPUs of the NodeType with a link of so many lanes.
func withLanes(n int32) v1alpha1.GPUInventory {
	g := eightH100
	g.LinkWidth, g.MaxLinkWidth = n, 16
	return g
}

func inspected(gpus ...v1alpha1.GPUInventory) HostFacts {
	f := free("server-1")
	f.Record.Status.Inventory = &v1alpha1.HostInventory{GPUs: gpus, GPUSource: v1alpha1.SourceBMC}
	return f
}

var (
	eightH100   = v1alpha1.GPUInventory{VendorID: "10de", DeviceID: "2330", Model: "H100-SXM5-80GB", Count: 8}
	sevenGPUs   = &v1alpha1.HostInventory{GPUSource: v1alpha1.SourceBMC, GPUs: []v1alpha1.GPUInventory{{VendorID: "10de", DeviceID: "2330", Model: "H100-SXM5-80GB", Count: 7}}}
	eightOfAny  = v1alpha1.GPUInventory{VendorID: "10de", Count: 8}
	fourUnknown = v1alpha1.GPUInventory{VendorID: "10de", DeviceID: "2fff", Count: 4}
	halls       = []v1alpha1.NodeProvider{{ObjectMeta: metav1.ObjectMeta{Name: "hall-1"}, Spec: v1alpha1.NodeProviderSpec{HostNamespace: "metal"}}}
)

func TestAHostFitsByProviderLabelsZoneAndHardware(t *testing.T) {
	for _, c := range []struct {
		name   string
		host   HostFacts
		change func(*HostFacts, *v1alpha1.NodeType)
		reason Reason
		says   string
	}{
		{"what was promised", inspected(eightH100), nil, Fitting, "fits"},
		{"one model under two PCI ids", inspected(v1alpha1.GPUInventory{DeviceID: "20b1", Model: "H100-SXM5-80GB", Count: 4}, v1alpha1.GPUInventory{DeviceID: "20f1", Model: "H100-SXM5-80GB", Count: 4}), nil, Fitting, ""},
		{"claimed hosts fit too", inspected(eightH100), func(f *HostFacts, _ *v1alpha1.NodeType) { f.Host.Status.PoweredOn = true }, Fitting, ""},
		{"not inspected yet", inspected(), func(f *HostFacts, _ *v1alpha1.NodeType) { f.Record.Status.Inventory = nil }, Fitting, ""},
		{"a host without a record", inspected(), func(f *HostFacts, _ *v1alpha1.NodeType) { f.Record = nil }, Fitting, ""},
		{"nodes without GPUs", inspected(eightH100), func(_ *HostFacts, n *v1alpha1.NodeType) { n.Spec.GPU = nil }, Fitting, ""},
		{"a vendor that the catalogue does not know", inspected(fourUnknown), func(_ *HostFacts, n *v1alpha1.NodeType) { n.Spec.GPU.Vendor = v1alpha1.VendorAMD }, Fitting, ""},
		{"another label", inspected(eightH100), func(f *HostFacts, _ *v1alpha1.NodeType) { f.Host.Labels["gpu-model"] = "a100" }, LabelsDiffer, "gpu-model=a100, and gpu-model=h100 is asked for"},
		{"no label", inspected(eightH100), func(f *HostFacts, _ *v1alpha1.NodeType) { delete(f.Host.Labels, "gpu-model") }, LabelsDiffer, "has no label gpu-model"},
		{"an empty selector", inspected(eightH100), func(_ *HostFacts, n *v1alpha1.NodeType) { n.Spec.HostSelector = metav1.LabelSelector{} }, LabelsDiffer, "selects nothing"},
		{"a selector nobody can read", inspected(eightH100), func(_ *HostFacts, n *v1alpha1.NodeType) {
			n.Spec.HostSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Sounds Like"}}
		}, LabelsDiffer, "selects nothing"},
		{"another zone", inspected(eightH100), func(_ *HostFacts, n *v1alpha1.NodeType) { n.Spec.Zone = "hall-2" }, OtherZone, `not "hall-2"`},
		{"another provider's namespace", inspected(eightH100), func(f *HostFacts, _ *v1alpha1.NodeType) { f.Host.Namespace = "other" }, OtherProvider, "has its hosts in metal"},
		{"a provider that is not there", inspected(eightH100), func(_ *HostFacts, n *v1alpha1.NodeType) { n.Spec.ProviderRef.Name = "gone" }, OtherProvider, "NodeProvider gone"},
		{"nobody could count the GPUs", inspected(), func(f *HostFacts, _ *v1alpha1.NodeType) { f.Record.Status.Inventory.GPUSource = "" }, Fitting, ""},
		{"nobody could tell the model", inspected(eightOfAny), nil, Fitting, ""},
		{"nobody could tell the model of too few", inspected(v1alpha1.GPUInventory{VendorID: "10de", Count: 4}), nil, HardwareDiffers, "has 4 GPUs of an unknown model"},
		{"a GPU is missing", inspected(v1alpha1.GPUInventory{VendorID: "10de", DeviceID: "2330", Model: "H100-SXM5-80GB", Count: 7}), nil, HardwareDiffers, "has 7 H100-SXM5-80GB, and 8 H100-SXM5-80GB are promised"},
		{"no GPU at all", inspected(), nil, HardwareDiffers, "has no GPU"},
		{"a GPU nobody knows", inspected(fourUnknown), nil, HardwareDiffers, "PCI id 10de:2fff, which is not in the catalogue"},
		{"as many of another model", inspected(v1alpha1.GPUInventory{Model: "A100-SXM4-80GB", Count: 8}), nil, HardwareDiffers, "has 8 A100-SXM4-80GB, and 8 H100-SXM5-80GB are promised"},
		{"two models", inspected(eightH100, fourUnknown), nil, HardwareDiffers, "8 H100-SXM5-80GB and 4 GPUs"},
		{"full width is required, and nobody has read it", inspected(eightH100), fullWidth, Fitting, ""},
		{"full width is required and there", inspected(withLanes(16)), fullWidth, Fitting, ""},
		{"full width is required and not there", inspected(withLanes(8)), fullWidth, HardwareInsufficient, "expected that GPU 10de:2330 has its 16 PCIe lanes, seen 8"},
		{"a narrow GPU where no width is required", inspected(withLanes(8)), nil, Fitting, ""},
		{"a width is required of a host that was not inspected", inspected(), func(f *HostFacts, n *v1alpha1.NodeType) { f.Record.Status.Inventory = nil; fullWidth(f, n) }, Fitting, ""},
	} {
		nodeType := h100s("h100")
		if c.change != nil {
			c.change(&c.host, &nodeType)
		}
		fits := CompareWithNodeTypes(c.host, []v1alpha1.NodeType{nodeType}, halls)
		if len(fits) != 1 || fits[0].Reason != c.reason || fits[0].IsFitting() != (c.reason == Fitting) || !strings.Contains(fits[0].Message, c.says) {
			t.Errorf("%s: %+v, want %s saying %q", c.name, fits, c.reason, c.says)
		}
	}
}

func TestALineNamesTheFittingNodeTypesOrWhyNone(t *testing.T) {
	elsewhere := h100s("elsewhere")
	elsewhere.Spec.ProviderRef.Name = "hall-2"
	a100 := h100s("a100")
	a100.Spec.HostSelector.MatchLabels = map[string]string{"gpu-model": "a100"}
	for _, c := range []struct {
		nodeTypes []v1alpha1.NodeType
		want      string
	}{
		{nil, "none: there is no NodeType"},
		{[]v1alpha1.NodeType{h100s("h100-mig"), a100, h100s("h100"), elsewhere}, "h100, h100-mig"},
		{[]v1alpha1.NodeType{a100, h100s("h100")}, "h100"},
		{[]v1alpha1.NodeType{a100, elsewhere}, "none: a100: has the label gpu-model=h100, and gpu-model=a100 is asked for"},
		{[]v1alpha1.NodeType{elsewhere}, "none: no NodeType takes hosts from here (elsewhere cannot be found by NodeProvider hall-2, which does not exist)"},
	} {
		if got := FitSummary(CompareWithNodeTypes(inspected(eightH100), c.nodeTypes, halls)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestAGPULabelThatNobodyCouldTellCountsAsMet(t *testing.T) {
	const count, model = v1alpha1.LabelGPUCount, v1alpha1.LabelGPUModel
	selector := func(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	uncounted := inspected()
	uncounted.Record.Status.Inventory.GPUSource = ""
	for _, c := range []struct {
		name     string
		host     HostFacts
		labels   map[string]string
		metal3   bool
		selector metav1.LabelSelector
		reason   Reason
	}{
		{"a count", uncounted, nil, false, selector(count, metav1.LabelSelectorOpIn, "8"), Fitting},
		{"any count", uncounted, nil, false, selector(count, metav1.LabelSelectorOpExists), Fitting},
		{"a model", uncounted, nil, false, selector(model, metav1.LabelSelectorOpIn, "H100-SXM5-80GB"), Fitting},
		{"no count", uncounted, nil, false, selector(count, metav1.LabelSelectorOpDoesNotExist), Fitting},
		{"a model, where only the model is unknown", inspected(eightOfAny), map[string]string{count: "8"}, false, selector(model, metav1.LabelSelectorOpExists), Fitting},
		{"a count that is another one", inspected(eightOfAny), map[string]string{count: "8"}, false, selector(count, metav1.LabelSelectorOpIn, "4"), LabelsDiffer},
		{"a label that somebody wrote", uncounted, map[string]string{count: "4"}, false, selector(count, metav1.LabelSelectorOpIn, "8"), LabelsDiffer},
		{"a label of another key", uncounted, nil, false, selector("rack", metav1.LabelSelectorOpExists), LabelsDiffer},
		{"there is no GPU", inspected(), map[string]string{count: "0"}, false, selector(count, metav1.LabelSelectorOpIn, "8"), LabelsDiffer},
		{"there is no GPU, so no model", inspected(), map[string]string{count: "0"}, false, selector(model, metav1.LabelSelectorOpExists), LabelsDiffer},
		{"with metal3 no agent looks", uncounted, nil, true, selector(count, metav1.LabelSelectorOpIn, "8"), LabelsDiffer},
		{"without a record no agent looks", HostFacts{Host: uncounted.Host}, nil, false, selector(count, metav1.LabelSelectorOpIn, "8"), LabelsDiffer},
	} {
		nodeType, provider := h100s("h100").Spec, halls[0].Spec
		nodeType.Zone, nodeType.HostSelector = "", c.selector
		if c.metal3 {
			provider.Metal3 = &v1alpha1.Metal3Provider{}
		}
		host := HostFacts{Host: c.host.Host.DeepCopy(), Record: c.host.Record}
		host.Host.Labels = c.labels
		if got := CheckFit(host, nodeType, provider); got.Reason != c.reason {
			t.Errorf("%s: %+v, expected %s", c.name, got, c.reason)
		}
	}
}

func TestASummaryNamesTheHostsThatLackHardware(t *testing.T) {
	nodeType := h100s("h100").Spec
	nodeType.Hardware = &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
	s := SummarizeHardware(nodeType, halls[0].Spec, []HostFacts{inspected(withLanes(8)), inspected(eightH100)})
	if len(s.Lacking) != 1 || len(s.Differing) != 0 || s.Known != 2 || !strings.Contains(s.Message(), "of the 2 hosts that are selected, 1 lack what spec.hardware requires and are not claimed: server-1 lacks hardware") {
		t.Errorf("%+v: %s", s, s.Message())
	}
	nodeType.GPU = nil
	s = SummarizeHardware(nodeType, halls[0].Spec, []HostFacts{inspected(withLanes(16))})
	if s.Known != 1 || s.Message() != "of the 1 host that are selected, none of the 1 whose hardware is known lacks what spec.hardware requires" {
		t.Errorf("%+v: %s", s, s.Message())
	}
}

func TestASummaryNamesTheSelectedHostsThatDiffer(t *testing.T) {
	named := func(name string, f HostFacts) HostFacts {
		f.Host.Name = name
		return f
	}
	other := named("other", inspected())
	other.Host.Labels["gpu-model"] = "a100"
	uninspected := named("uninspected", inspected())
	uninspected.Record.Status.Inventory = nil
	for _, c := range []struct {
		hosts []HostFacts
		want  string
	}{
		{[]HostFacts{other}, "the GPUs of the 0 hosts that are selected are not known"},
		{[]HostFacts{other, uninspected}, "the GPUs of the 1 host that are selected are not known"},
		{[]HostFacts{other, uninspected, named("a", inspected(eightH100))}, "of the 2 hosts that are selected, the GPUs of 1 are known and as spec.gpu promises"},
		{[]HostFacts{named("b", inspected(fourUnknown)), named("a", inspected()), named("c", inspected(eightH100))},
			"of the 3 hosts that are selected, 2 have other GPUs than spec.gpu promises and are not claimed: a is selected by its labels but has no GPU, and 8 H100-SXM5-80GB are promised: correct the labels or the hostSelector; " +
				"b is selected by its labels but has 4 GPUs with the PCI id 10de:2fff, which is not in the catalogue, and 8 H100-SXM5-80GB are promised: correct the labels or the hostSelector"},
		{[]HostFacts{named("a", inspected()), named("b", inspected()), named("c", inspected()), named("d", inspected()), named("e", inspected())}, "; 1 host more"},
	} {
		if got := SummarizeHardware(h100s("h100").Spec, halls[0].Spec, c.hosts).Message(); got != c.want && !strings.HasSuffix(got, c.want) {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
