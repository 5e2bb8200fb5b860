package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/presentation"
)

// The names of checks. The checks of resources are called resource/<name>, foreign/<name> and allocatable/<name>. See PrefixSlices and
// PrefixDeviceClass for the checks of dynamic resource allocation (DRA).
const (
	CheckProviderID = "identity/provider-id"
	CheckSystemUUID = "identity/system-uuid"
	CheckReady      = "node/ready"
	CheckBoot       = "boot/current"
	CheckKernel     = "software/kernel"
	CheckKubelet    = "software/kubelet"
	CheckGPUModes   = "report/gpu-mode"
	CheckContainerd = "report/containerd"
	// PrefixResource begins the names of checks for resources that the node must advertise, PrefixForeign of those that it must
	// not, PrefixAllocatable of what kubelet leaves to pods of its own resources.
	PrefixResource    = "resource/"
	PrefixForeign     = "foreign/"
	PrefixAllocatable = "allocatable/"
	// CheckUnjudged lists what the node advertises beside that. It always passes.
	CheckUnjudged = "other/resources"
)

// checkFunc makes the checks of one kind. It returns none if there is nothing to compare.
type checkFunc func(Input) []v1alpha1.Check

// checkFuncs are ordered by importance: the identity of the node, whether its object is current, the software that it runs, the
// resources that it advertises. The first check with the worst result becomes the message of the condition.
var checkFuncs = []checkFunc{checkProviderID, checkSystemUUID, checkReady, checkBoot, checkKernel, checkKubelet, checkLabels, checkLabelRules, checkGPUModes, checkContainerd, checkExactResources, checkCPU, checkMemory, checkEphemeralStorage, checkAllocatable, checkSlices, checkDeviceClasses, checkForeignResources, checkAbsentDrivers, listUnjudgedResources, checkProbe}

// checkProbe comes last: a probe is only made when every other check passes.
func checkProbe(in Input) []v1alpha1.Check { return in.ProbeChecks }

func runChecks(in Input) []v1alpha1.Check {
	in.pools = newDevicePools(in.Slices, in.Node)
	var out []v1alpha1.Check
	for _, c := range checkFuncs {
		out = append(out, c(in)...)
	}
	numberDuplicates(out)
	delayFailures(in, out)
	failOverdue(in, out)
	addGateHint(in, out)
	return out
}

// numberDuplicates appends #2, #3 and so on to the names of later checks with the same name: two expectations may be about the
// same thing, and names are the keys of a list in the API.
func numberDuplicates(all []v1alpha1.Check) {
	counts := map[string]int{}
	for i, c := range all {
		counts[c.Name]++
		if n := counts[c.Name]; n > 1 {
			all[i].Name = fmt.Sprintf("%s#%d", c.Name, n)
		}
	}
}

// delayFailures turns failures into waiting while the Node object is not current. For example: a node boots again after
// its configuration was changed from 16 shared replicas to 8 whole GPUs. Before kubelet's first report the Node object still
// says nvidia.com/gpu: 16, which is more than expected. Without this the Machine would fail, although nothing is wrong. The identity of the node
// fails at once, because it does not change by waiting, and so does a tenant without the API for ResourceSlices.
func delayFailures(in Input, all []v1alpha1.Check) {
	if isCurrent(in.Node) {
		return
	}
	for i, c := range all {
		if c.Result == v1alpha1.CheckFail && !strings.HasPrefix(c.Name, "identity/") && !isUnserved(in, c) {
			all[i].Result = v1alpha1.CheckWait
		}
	}
}

// isUnserved reports whether a check fails because the tenant's API server does not serve ResourceSlices.
func isUnserved(in Input, c v1alpha1.Check) bool {
	return !in.SlicesServed && strings.HasPrefix(c.Name, PrefixSlices)
}

// failOverdue turns waiting into failure once the deadline has passed.
func failOverdue(in Input, all []v1alpha1.Check) {
	if !isOverdue(in) {
		return
	}
	for i, c := range all {
		if c.Result == v1alpha1.CheckWait {
			all[i].Result = v1alpha1.CheckFail
		}
	}
}

func isOverdue(in Input) bool { return !in.Deadline.IsZero() && !in.Now.Before(in.Deadline) }

// isCurrent reports whether kubelet keeps the Node object up to date.
func isCurrent(node *corev1.Node) bool {
	return readyCondition(node).Status == corev1.ConditionTrue && node.Status.NodeInfo.BootID != ""
}

func readyCondition(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{Status: corev1.ConditionUnknown, Message: "kubelet has not reported"}
}

// checkProviderID compares the providerID. One that the tenant's cluster sets says nothing, and the Node is known by more than that.
func checkProviderID(in Input) []v1alpha1.Check {
	claim, node := in.Identity.Claim, nodeidentity.NodeOf(in.Node)
	found := nodeidentity.Of(claim, node)
	if found.Owner == nodeidentity.ThisAttempt && !strings.HasPrefix(node.ProviderID, v1alpha1.ProviderIDPrefix) {
		return nil
	}
	return single(newCheck(CheckProviderID, cmp.Or(claim.ProviderID(), "the installation's Node"), node.ProviderID, found.Owner == nodeidentity.ThisAttempt,
		"the Node was registered by another installation: on the node, providerID of kubelet's configuration; delete the Node object once that machine is off"))
}

func checkSystemUUID(in Input) []v1alpha1.Check {
	expected, observed := in.Identity.Claim.SystemUUID, in.Node.Status.NodeInfo.SystemUUID
	if expected == "" {
		return nil
	}
	return single(newCheck(CheckSystemUUID, expected, observed, strings.EqualFold(observed, expected),
		"the Node is not the server that was installed: two machines use the same credentials or disk"))
}

func checkReady(in Input) []v1alpha1.Check {
	c := v1alpha1.Check{Name: CheckReady, Result: v1alpha1.CheckPass, Expected: "True"}
	r := readyCondition(in.Node)
	c.Observed = string(r.Status)
	if r.Status != corev1.ConditionTrue {
		c.Result = v1alpha1.CheckWait
		c.Hint = cmp.Or(input.Line(r.Message, maxText), "kubectl describe node; on the node: journalctl -u kubelet")
	}
	return single(c)
}

// checkBoot names the boot that the verdict is about. Another boot begins a new verdict.
func checkBoot(in Input) []v1alpha1.Check {
	id := in.Node.Status.NodeInfo.BootID
	if id == "" {
		return single(v1alpha1.Check{Name: CheckBoot, Result: v1alpha1.CheckWait, Expected: "a boot id", Hint: "kubelet has not reported which boot it is: journalctl -u kubelet on the node"})
	}
	return single(v1alpha1.Check{Name: CheckBoot, Result: v1alpha1.CheckPass, Expected: id, Observed: id})
}

func checkKernel(in Input) []v1alpha1.Check {
	expected, observed := in.Expectation.Kernel, in.Node.Status.NodeInfo.KernelVersion
	if expected == "" {
		return nil
	}
	return single(newCheck(CheckKernel, expected, observed, hasVersionPrefix(expected, observed),
		"the kernel that runs is not the one that the OSImage names in os.kernel: the GPU driver was built for that one"))
}

// hasVersionPrefix reports whether the kernel release is the expected one or begins with its numbers: 6.1.5-amd64 has the prefix
// 6.1, and 6.12 has not.
func hasVersionPrefix(expected, observed string) bool {
	rest, ok := strings.CutPrefix(observed, expected)
	return ok && (rest == "" || !unicode.IsDigit(rune(rest[0])) || !unicode.IsDigit(rune(expected[len(expected)-1])))
}

func checkKubelet(in Input) []v1alpha1.Check {
	expected, observed := in.Expectation.Kubelet, strings.TrimPrefix(in.Node.Status.NodeInfo.KubeletVersion, "v")
	if expected == "" {
		return nil
	}
	return single(newCheck(CheckKubelet, expected, observed, observed == expected, "the kubelet that runs is not the one that the OSImage names in software.kubelet"))
}

// checkLabels compares the labels that the vendor's software sets, in clusters that run it.
func checkLabels(in Input) []v1alpha1.Check {
	var out []v1alpha1.Check
	for _, l := range in.Expectation.Labels {
		observed, ok := in.Node.Labels[l.Key]
		if !ok {
			continue
		}
		c := newCheck(l.Check, l.Value, observed, observed == l.Value, l.Hint)
		if slices.Contains(l.Passing, observed) {
			c.Result = v1alpha1.CheckWait
		}
		out = append(out, c)
	}
	return out
}

// maxText is the longest text, in bytes, that a verdict quotes from a Node object: 200 bytes, and the mark that Truncate adds to a
// longer text. The Node object belongs to the tenant, and the verdict is stored in the management cluster.
const maxText = 200 + len("...")

// newCheck returns a check that passes if the values are equal, waits if nothing is observed yet, and fails otherwise.
func newCheck(name, expected, observed string, equal bool, hint string) v1alpha1.Check {
	c := v1alpha1.Check{Name: name, Result: v1alpha1.CheckPass, Expected: expected, Observed: input.Line(observed, maxText)}
	if equal {
		return c
	}
	c.Hint, c.Result = hint, v1alpha1.CheckFail
	if observed == "" {
		c.Result = v1alpha1.CheckWait
	}
	return c
}

func single(c v1alpha1.Check) []v1alpha1.Check { return []v1alpha1.Check{c} }

// checkExactResources compares the resources whose capacity and allocatable must both equal the expectation. Capacity counts all
// devices, allocatable only the healthy ones.
func checkExactResources(in Input) []v1alpha1.Check {
	var out []v1alpha1.Check
	for _, r := range in.Expectation.Resources {
		out = append(out, exactResourceCheck(in.Node, r))
	}
	return out
}

func exactResourceCheck(node *corev1.Node, r v1alpha1.ExpectedResource) v1alpha1.Check {
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

func checkCPU(in Input) []v1alpha1.Check {
	if in.Expectation.CPU == nil {
		return nil
	}
	expected := *in.Expectation.CPU
	return single(capacityCheck(in.Node, corev1.ResourceCPU, expected.String(), func(observed resource.Quantity) bool { return observed.Cmp(expected) == 0 },
		"a CPU is missing or more are there than promised: the host's inventory, its firmware settings (SMT) and NodeType.spec.resources.cpu"))
}

// checkMemory allows the firmware and the kernel to take 5%.
func checkMemory(in Input) []v1alpha1.Check {
	if in.Expectation.Memory == nil {
		return nil
	}
	expected := *in.Expectation.Memory
	fits := func(observed resource.Quantity) bool {
		// Divided first: 95% of very large quantities must not overflow.
		return observed.Value() >= expected.Value()-expected.Value()/20 && observed.Cmp(expected) <= 0
	}
	return single(capacityCheck(in.Node, corev1.ResourceMemory, "95% to 100% of "+expected.String(), fits,
		"a memory module is missing or more is there than promised: the host's inventory and NodeType.spec.resources.memory"))
}

func checkEphemeralStorage(in Input) []v1alpha1.Check {
	if in.Expectation.EphemeralStorage == nil {
		return nil
	}
	expected := *in.Expectation.EphemeralStorage
	return single(capacityCheck(in.Node, corev1.ResourceEphemeralStorage, "at least "+expected.String(), func(observed resource.Quantity) bool { return observed.Cmp(expected) >= 0 },
		"the root file system is too small, or did not grow to its disk at the first boot: df -h / on the node"))
}

// capacityCheck compares a quantity that kubelet itself measures. It does not change after kubelet's first report, so a difference
// fails at once.
func capacityCheck(node *corev1.Node, name corev1.ResourceName, expected string, fits func(resource.Quantity) bool, hint string) v1alpha1.Check {
	quantity := node.Status.Capacity[name]
	observed := ""
	if !quantity.IsZero() {
		observed = quantity.String()
	}
	return newCheck(PrefixResource+string(name), expected, observed, !quantity.IsZero() && fits(quantity), hint)
}

// isForeign reports whether a resource of that name must be absent: it was not promised, and GPU software advertises it. What other plugins advertise under a
// vendor's name, such as NVIDIA's network operator, is no part of the verdict.
func isForeign(e v1alpha1.NodeExpectation, name corev1.ResourceName) bool {
	return e.IsForeign(name) && presentation.IsAdvertisedByGPUSoftware(name)
}

// listUnjudgedResources returns a check that lists the extended resources that were not promised and are not foreign.
func listUnjudgedResources(in Input) []v1alpha1.Check {
	var listed []string
	for _, name := range slices.Sorted(maps.Keys(in.Node.Status.Capacity)) {
		domain, _, isExtended := strings.Cut(string(name), "/")
		isPromised := slices.ContainsFunc(in.Expectation.Resources, func(r v1alpha1.ExpectedResource) bool { return r.Name == name })
		quantity := in.Node.Status.Capacity[name]
		if isExtended && !strings.HasSuffix(domain, "kubernetes.io") && !isPromised && !isForeign(in.Expectation, name) && !quantity.IsZero() {
			listed = append(listed, string(name)+" "+quantity.String())
		}
	}
	if len(listed) == 0 {
		return nil
	}
	return single(v1alpha1.Check{Name: CheckUnjudged, Result: v1alpha1.CheckPass, Expected: "not promised, not judged", Observed: input.Line(strings.Join(listed, ", "), maxText)})
}

// checkForeignResources returns a check for each accelerator resource that is not expected. It passes if the quantity is 0,
// because kubelet keeps the names of earlier plugins with 0 until the Node object is deleted.
func checkForeignResources(in Input) []v1alpha1.Check {
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{in.Node.Status.Capacity, in.Node.Status.Allocatable} {
		for name := range list {
			if isForeign(in.Expectation, name) {
				names[name] = true
			}
		}
	}
	var out []v1alpha1.Check
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, foreignResourceCheck(in, name))
	}
	// Failures come first, so that the limit omits none of them before a check that passes.
	slices.SortStableFunc(out, func(a, b v1alpha1.Check) int { return strings.Compare(string(a.Result), string(b.Result)) })
	return out[:min(len(out), maxForeign)]
}

// maxForeign limits the foreign resources in a verdict, because an administrator of the tenant can add any number to a node.
const maxForeign = 16

func foreignResourceCheck(in Input, name corev1.ResourceName) v1alpha1.Check {
	observed := in.Node.Status.Capacity[name]
	if a := in.Node.Status.Allocatable[name]; a.Cmp(observed) > 0 {
		observed = a
	}
	c := v1alpha1.Check{Name: PrefixForeign + string(name), Result: v1alpha1.CheckPass, Expected: "absent", Observed: observed.String()}
	if observed.IsZero() {
		c.Observed = "0, the residue of an earlier plugin"
		return c
	}
	c.Result = v1alpha1.CheckFail
	c.Hint = "the NodeType does not promise it: another vendor's or mode's plugin runs on the node, or the GPUs have another mode than ordered; promise it in NodeType.spec.resources if it is wanted"
	if slices.ContainsFunc(in.Expectation.Slices, func(e v1alpha1.ExpectedSlices) bool { return vendor(e.Driver) == vendor(string(name)) }) {
		c.Hint = "a DRA driver and the device plugin give away the same GPUs: keep the device plugin off this node" +
			daemonSetsText(likelyDaemonSets(in, string(name), roleDevicePlugin)) + "; NVIDIA's operator does that by the label nvidia.com/gpu.deploy.device-plugin=false"
	}
	return c
}
