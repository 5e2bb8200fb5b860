package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// PrefixSlices begins the names of checks for ResourceSlices: slices/<driver> for the pools of a driver, and
// slices/<driver>/<type>, slices/<driver>/<type>/<attribute> and slices/<driver>/taints for its devices.
const PrefixSlices = "slices/"

// checkSlices compares what DRA drivers publish for the node with the expectation.
func checkSlices(in Input) []v1alpha1.Check {
	var out []v1alpha1.Check
	for _, e := range in.Expectation.Slices {
		if !in.SlicesServed {
			out = append(out, notServedCheck(e.Driver))
			continue
		}
		out = append(out, completenessCheck(in, e))
		out = append(out, deviceChecks(in, e)...)
	}
	return out
}

func notServedCheck(driver string) v1alpha1.Check {
	return v1alpha1.Check{
		Name: PrefixSlices + driver, Result: v1alpha1.CheckFail, Expected: "the tenant's API serves resource.k8s.io/v1", Observed: "it does not",
		Hint: "this NodeType's GPUs are given away by dynamic resource allocation: the tenant must run Kubernetes 1.34 or newer, with resource.k8s.io/v1 " +
			"not disabled by the API server's --runtime-config; or use a NodeType whose presentation is not DRA",
	}
}

// completenessCheck waits until all slices of the newest generation of each pool exist. Before that the devices of a pool cannot be
// compared: a driver that has written 1 of 2 slices shows 4 of 8 GPUs.
func completenessCheck(in Input, e v1alpha1.ExpectedSlices) v1alpha1.Check {
	c := v1alpha1.Check{Name: PrefixSlices + e.Driver, Result: v1alpha1.CheckPass, Expected: "complete", Observed: "complete"}
	all := in.pools[e.Driver]
	if len(all) == 0 {
		c.Result, c.Observed, c.Hint = v1alpha1.CheckWait, "", e.Hint
		if len(in.DaemonSets) > 0 && len(likelyDaemonSets(in, e.Driver, roleDRA)) == 0 {
			c.Hint = "no DaemonSet that fits this node looks like a DRA driver of " + vendor(e.Driver) + ": is it installed, and does its nodeSelector fit? " + e.Hint
		}
	}
	for _, p := range all {
		if p.incompleteReason == "" {
			continue
		}
		c.Result, c.Observed = v1alpha1.CheckWait, input.Line(p.incompleteReason, maxText)
		c.Hint = "the scheduler ignores such a pool; the driver's pod on this node writes it: kubectl get resourceslices and the log of that pod; " + e.Hint
		break
	}
	return c
}

// deviceChecks compares the devices of each expected kind, and fails on devices of any other kind.
func deviceChecks(in Input, e v1alpha1.ExpectedSlices) []v1alpha1.Check {
	all := in.pools.usableDevices(e.Driver, in.Node.Name)
	kinds, others := sortByKind(e, all)
	gpus := newForms(in, e, kinds)
	var out []v1alpha1.Check
	for i, expected := range e.Devices {
		name := PrefixSlices + e.Driver + "/" + cmp.Or(expected.Type, "device") // not every driver publishes the type
		if len(expected.Profiles) > 0 {
			name += "/" + expected.Profiles[0]
		}
		out = append(out, gpus.countCheck(name, expected.Count, kinds[i], e.Hint))
		for _, a := range slices.Sorted(maps.Keys(expected.Attributes)) {
			out = append(out, attributeChecks(name+"/"+a, expected, a, kinds[i], e.Hint)...)
		}
		out = append(out, productChecks(name, expected, kinds[i], e.Hint)...)
	}
	if len(all) > 0 {
		out = append(out, taintCheck(e.Driver, all))
	}
	if len(others) > 0 {
		out = append(out, v1alpha1.Check{
			Name: PrefixForeign + e.Driver, Result: v1alpha1.CheckFail, Expected: "only what was promised",
			Observed: fmt.Sprintf("%d more devices, the first %s: %s", len(others), others[0].kindText(), input.Line(others[0].Name, maxName)),
			Hint:     "the GPUs have another mode than ordered, or the driver publishes more than the NodeType promises; " + e.Hint,
		})
	}
	return out
}

// sortByKind returns the devices of each expected kind, and those of none.
func sortByKind(e v1alpha1.ExpectedSlices, all []device) (kinds [][]device, others []device) {
	kinds = make([][]device, len(e.Devices))
	for _, d := range all {
		i := slices.IndexFunc(e.Devices, d.isOfKind)
		if i < 0 {
			others = append(others, d)
			continue
		}
		kinds[i] = append(kinds[i], d)
	}
	return kinds, others
}

// countCheck waits if devices are missing, and fails if there are more than expected.
func countCheck(name string, expected, observed int, hint string) v1alpha1.Check {
	c := v1alpha1.Check{Name: name, Result: v1alpha1.CheckPass, Expected: strconv.Itoa(expected), Observed: strconv.Itoa(observed)}
	switch {
	case observed < expected:
		c.Result, c.Hint = v1alpha1.CheckWait, hint
	case observed > expected:
		c.Result, c.Hint = v1alpha1.CheckFail, "the driver publishes more than was promised: correct NodeType.spec.gpu, or what publishes it; "+hint
	}
	return c
}

// attributeChecks compares one attribute of all devices of a kind. It fails on a wrong value, and waits for a missing one, which
// may still be published, unless the attribute is optional.
func attributeChecks(name string, expected v1alpha1.ExpectedDevices, attribute string, devices []device, hint string) []v1alpha1.Check {
	if slices.Contains(expected.Optional, attribute) {
		devices = slices.DeleteFunc(slices.Clone(devices), func(d device) bool { return len(d.attributeValues(attribute)) == 0 })
	}
	return deviceCheck(name, strings.Join(expected.Attributes[attribute], " or "), devices, hint, func(d device) (string, bool, bool) {
		found := d.attributeValues(attribute)
		return d.attributeText(attribute), len(found) > 0, isAccepted(found, expected.Attributes[attribute])
	})
}

// deviceSample counts devices and describes the first.
type deviceSample struct {
	count int
	first string
}

func (s *deviceSample) add(d device, what string) {
	if s.count++; s.count == 1 {
		s.first = input.Line(d.Name, maxName) + ": " + what
	}
}

// String describes the first device, and says how many more there are.
func (s deviceSample) String() string {
	if s.count > 1 {
		return fmt.Sprintf("%s, and %d more devices", s.first, s.count-1)
	}
	return s.first
}

// taintCheck waits while a device has a taint, with which its driver keeps it from pods, usually because it is unhealthy. A taint
// with the effect None is only information.
func taintCheck(driver string, devices []device) v1alpha1.Check {
	c := v1alpha1.Check{Name: PrefixSlices + driver + "/taints", Result: v1alpha1.CheckPass, Expected: "none", Observed: "none"}
	var tainted deviceSample
	for _, d := range devices {
		i := slices.IndexFunc(d.Taints, func(t resourcev1.DeviceTaint) bool { return t.Effect != resourcev1.DeviceTaintEffectNone })
		if i < 0 {
			continue
		}
		t := d.Taints[i]
		tainted.add(d, fmt.Sprintf("%s=%s:%s", input.Line(t.Key, maxName), input.Line(t.Value, maxName), input.Line(string(t.Effect), maxName)))
	}
	if tainted.count > 0 {
		c.Result, c.Observed = v1alpha1.CheckWait, tainted.String()
		c.Hint = "the driver withholds the device from pods: nvidia-smi -q and dmesg (Xid) on the node; the value of the taint says more"
	}
	return c
}

// checkAbsentDrivers fails if a driver publishes devices that must publish none, because the device plugin advertises the same GPUs:
// the scheduler would give one GPU to two pods.
func checkAbsentDrivers(in Input) []v1alpha1.Check {
	var out []v1alpha1.Check
	for _, driver := range in.Expectation.AbsentDrivers {
		devices, residue := 0, 0
		for _, p := range in.pools[driver] {
			devices += len(p.devices(driver, in.Node.Name))
			residue += p.staleSlices
		}
		c := v1alpha1.Check{Name: PrefixForeign + driver, Result: v1alpha1.CheckFail, Expected: "absent", Observed: fmt.Sprintf("%d devices", devices)}
		c.Hint = "a DRA driver and the device plugin give away the same GPUs: keep the driver off this node" + daemonSetsText(likelyDaemonSets(in, driver, roleDRA)) + ", or order presentation.mode DRA"
		switch {
		case devices > 0:
			out = append(out, c)
		case residue > 0:
			c.Result, c.Observed = v1alpha1.CheckWait, fmt.Sprintf("%d slices of an earlier Node object", residue)
			c.Hint = "the tenant's garbage collector deletes them: is its kube-controller-manager running?"
			out = append(out, c)
		}
	}
	return out
}
