package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// exact compares resources of which capacity, allocatable and promise must be equal. Capacity counts every device, and
// allocatable the healthy ones only.
func exact(in Input) []v1alpha1.Check {
	var out []v1alpha1.Check
	for _, r := range in.Expectation.Resources {
		out = append(out, exactOne(in.Node, r))
	}
	return out
}

func exactOne(node *corev1.Node, r v1alpha1.ExpectedResource) v1alpha1.Check {
	capacity, reported := node.Status.Capacity[r.Name]
	allocatable := node.Status.Allocatable[r.Name]
	c := v1alpha1.Check{Name: PrefixResource + string(r.Name), Result: v1alpha1.CheckPass, Expected: r.Quantity.String(), Observed: capacity.String()}
	if capacity.Cmp(allocatable) != 0 {
		c.Observed = fmt.Sprintf("capacity %s, allocatable %s", capacity.String(), allocatable.String())
	}
	lower := capacity.Cmp(r.Quantity) < 0 || allocatable.Cmp(r.Quantity) < 0
	higher := capacity.Cmp(r.Quantity) > 0 || allocatable.Cmp(r.Quantity) > 0
	switch {
	case higher:
		c.Result, c.Hint = v1alpha1.CheckFail, "the node advertises more than was promised: correct NodeType.spec, or what advertises it; "+r.Hint
	case lower && (r.Waits || !reported):
		c.Result, c.Hint = v1alpha1.CheckWait, r.Hint
	case lower:
		c.Result, c.Hint = v1alpha1.CheckFail, r.Hint
	}
	return c
}

func cpu(in Input) []v1alpha1.Check {
	if in.Expectation.CPU == nil {
		return nil
	}
	want := *in.Expectation.CPU
	return one(capacity(in.Node, corev1.ResourceCPU, want.String(), func(seen resource.Quantity) bool { return seen.Cmp(want) == 0 },
		"a CPU is missing or more are there than promised: the host's inventory, its firmware settings (SMT) and NodeType.spec.resources.cpu"))
}

// memory leaves 5% to the firmware and the kernel.
func memory(in Input) []v1alpha1.Check {
	if in.Expectation.Memory == nil {
		return nil
	}
	want := *in.Expectation.Memory
	fits := func(seen resource.Quantity) bool {
		// Divided first: 95% of very large quantities must not overflow.
		return seen.Value() >= want.Value()-want.Value()/20 && seen.Cmp(want) <= 0
	}
	return one(capacity(in.Node, corev1.ResourceMemory, "95% to 100% of "+want.String(), fits,
		"a memory module is missing or more is there than promised: the host's inventory and NodeType.spec.resources.memory"))
}

func ephemeralStorage(in Input) []v1alpha1.Check {
	if in.Expectation.EphemeralStorage == nil {
		return nil
	}
	want := *in.Expectation.EphemeralStorage
	return one(capacity(in.Node, corev1.ResourceEphemeralStorage, "at least "+want.String(), func(seen resource.Quantity) bool { return seen.Cmp(want) >= 0 },
		"the root file system is too small, or did not grow to its disk at the first boot: df -h / on the node"))
}

// capacity compares what kubelet itself measures. It is right from its first report on, or wrong.
func capacity(node *corev1.Node, name corev1.ResourceName, expected string, fits func(resource.Quantity) bool, hint string) v1alpha1.Check {
	seen := node.Status.Capacity[name]
	observed := ""
	if !seen.IsZero() {
		observed = seen.String()
	}
	return compare(PrefixResource+string(name), expected, observed, !seen.IsZero() && fits(seen), hint)
}

// foreign finds resources of accelerators that the NodeType does not promise. Kubelet keeps the names of earlier plugins
// at 0 for as long as the Node object lives, so 0 is only mentioned.
func foreign(in Input) []v1alpha1.Check {
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{in.Node.Status.Capacity, in.Node.Status.Allocatable} {
		for name := range list {
			if in.Expectation.IsForeign(name) {
				names[name] = true
			}
		}
	}
	var out []v1alpha1.Check
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, foreignOne(in, name))
	}
	// What fails comes first, so that it is not what is left out.
	slices.SortStableFunc(out, func(a, b v1alpha1.Check) int { return strings.Compare(string(a.Result), string(b.Result)) })
	return out[:min(len(out), maxForeign)]
}

// maxForeign bounds the foreign resources in a verdict: who administers the tenant can put any number of them on a node.
const maxForeign = 16

func foreignOne(in Input, name corev1.ResourceName) v1alpha1.Check {
	seen := in.Node.Status.Capacity[name]
	if a := in.Node.Status.Allocatable[name]; a.Cmp(seen) > 0 {
		seen = a
	}
	c := v1alpha1.Check{Name: PrefixForeign + string(name), Result: v1alpha1.CheckPass, Expected: "absent", Observed: seen.String()}
	if seen.IsZero() {
		c.Observed = "0, the residue of an earlier plugin"
		return c
	}
	c.Result = v1alpha1.CheckFail
	c.Hint = "the NodeType does not promise it: another vendor's or mode's plugin runs on the node, or the GPUs have another mode than ordered; promise it in NodeType.spec.resources if it is wanted"
	if slices.ContainsFunc(in.Expectation.Slices, func(e v1alpha1.ExpectedSlices) bool { return vendor(e.Driver) == vendor(string(name)) }) {
		c.Hint = "a DRA driver and the device plugin give away the same GPUs: keep the device plugin off this node" +
			named(suspects(in, string(name), roleDevicePlugin)) + "; NVIDIA's operator does that by the label nvidia.com/gpu.deploy.device-plugin=false"
	}
	return c
}
