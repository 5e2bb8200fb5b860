package values

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// Drivers of DRA.
const (
	nvidiaDRA = "gpu.nvidia.com"
	amdDRA    = "gpu.amd.com"
)

// tenant is a tenant's NodeTypes by what serves their GPUs, each sorted by name. Each is in one of them alone, but for
// domains.
type tenant struct {
	// plugin, dra and vms are NVIDIA's: device plugin, DRA driver, and what gives GPUs to virtual machines.
	plugin, dra, vms []NodeType
	// domains are those of NVIDIA's whose IMEX is run by the DRA driver's compute domains, whatever serves their GPUs.
	domains []NodeType
	// amdPlugin and amdDRA are AMD's.
	amdPlugin, amdDRA []NodeType
}

// read sorts NodeTypes by what serves them.
func read(nodeTypes []NodeType) (tenant, error) {
	var t tenant
	all := sorted(nodeTypes)
	for i, n := range all {
		if i > 0 && all[i-1].Name == n.Name {
			return tenant{}, fmt.Errorf("two NodeTypes have the name %s", n.Name)
		}
		if n.GPU == nil {
			continue
		}
		switch n.GPU.Vendor {
		case v1alpha1.VendorNVIDIA:
			if err := t.addNVIDIA(n); err != nil {
				return tenant{}, err
			}
		case v1alpha1.VendorAMD:
			if published(n, amdDRA) {
				t.amdDRA = append(t.amdDRA, n)
			} else {
				t.amdPlugin = append(t.amdPlugin, n)
			}
		}
	}
	return t, nil
}

func (t *tenant) addNVIDIA(n NodeType) error {
	model, err := catalogue.Lookup(n.GPU.Vendor, n.GPU.Model)
	if err != nil {
		return fmt.Errorf("NodeType %s: %w", n.Name, err)
	}
	switch {
	case len(n.Plan.Tenant.HostDevices) > 0:
		t.vms = append(t.vms, n)
		return nil
	case published(n, nvidiaDRA):
		t.dra = append(t.dra, n)
	default:
		t.plugin = append(t.plugin, n)
	}
	if model.Link == catalogue.LinkRack && n.GPU.IMEX != "Host" {
		t.domains = append(t.domains, n)
	}
	return nil
}

func published(n NodeType, driver string) bool {
	return slices.ContainsFunc(n.Plan.Expectation.Slices, func(s v1alpha1.ExpectedSlices) bool { return s.Driver == driver })
}

func sorted(nodeTypes []NodeType) []NodeType {
	return slices.SortedFunc(slices.Values(nodeTypes), func(a, b NodeType) int { return cmp.Compare(a.Name, b.Name) })
}

func names(nodeTypes []NodeType) []string {
	var out []string
	for _, n := range nodeTypes {
		out = append(out, n.Name)
	}
	return out
}

// operated says whether the vendor's operator installs the NodeType's driver, and with it everything else.
func operated(n NodeType) bool { return n.GPU.Driver.Source == v1alpha1.DriverFromOperator }

// itself says that the NodeType's driver is on the node without an operator.
func itself(n NodeType) bool { return !operated(n) }

// external says whether NVIDIA's KubeVirt device plugin advertises the NodeType's devices, and not KubeVirt's own.
func external(n NodeType) bool {
	return slices.ContainsFunc(n.Plan.Tenant.HostDevices, func(d v1alpha1.PermittedHostDevice) bool { return d.External })
}

func only(nodeTypes []NodeType, is func(NodeType) bool) []NodeType {
	var out []NodeType
	for _, n := range nodeTypes {
		if is(n) {
			out = append(out, n)
		}
	}
	return out
}

// group is NodeTypes that want the same of a vendor's software.
type group[K comparable] struct {
	want  K
	nodes []NodeType
}

// grouped puts together NodeTypes that want the same, in the order in which less sorts what they want.
func grouped[K comparable](nodeTypes []NodeType, want func(NodeType) K, compare func(a, b K) int) []group[K] {
	var out []group[K]
	for _, n := range nodeTypes {
		k := want(n)
		at := slices.IndexFunc(out, func(g group[K]) bool { return g.want == k })
		if at < 0 {
			at, out = len(out), append(out, group[K]{want: k})
		}
		out[at].nodes = append(out[at].nodes, n)
	}
	slices.SortFunc(out, func(a, b group[K]) int { return compare(a.want, b.want) })
	return out
}

// gate of a NodeType.
func gate(n NodeType) corev1.Taint {
	out := n.Gate
	out.Key = cmp.Or(out.Key, v1alpha1.DefaultGateTaintKey)
	out.Effect = cmp.Or(out.Effect, corev1.TaintEffectNoSchedule)
	return out
}

// Tolerations of a DaemonSet without which nodes of the NodeTypes do not become whole: the gate, which a node carries until
// it advertises what was promised, and the NodeTypes' own taints.
func Tolerations(nodeTypes []NodeType) []corev1.Toleration {
	var out []corev1.Toleration
	add := func(t corev1.Toleration) {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	for _, n := range sorted(nodeTypes) {
		g := gate(n)
		add(corev1.Toleration{Key: g.Key, Operator: corev1.TolerationOpExists, Effect: g.Effect})
		for _, own := range n.Taints {
			t := corev1.Toleration{Key: own.Key, Operator: corev1.TolerationOpEqual, Value: own.Value, Effect: own.Effect}
			if own.Value == "" {
				t.Operator = corev1.TolerationOpExists
			}
			add(t)
		}
	}
	slices.SortFunc(out, func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return out
}

// tolerations are those, after the one that a vendor's own software has for a taint that its users set.
func tolerations(vendor string, nodeTypes []NodeType) []corev1.Toleration {
	first := corev1.Toleration{Key: vendor, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	rest := slices.DeleteFunc(Tolerations(nodeTypes), func(t corev1.Toleration) bool { return t == first })
	return append([]corev1.Toleration{first}, rest...)
}

// nodesOf selects the nodes of the NodeTypes. A node has one NodeType, so that two DaemonSets never meet on it.
func nodesOf(nodeTypes []NodeType) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: v1alpha1.LabelNodeType, Operator: corev1.NodeSelectorOpIn, Values: names(nodeTypes)},
		}}},
	}}}
}
