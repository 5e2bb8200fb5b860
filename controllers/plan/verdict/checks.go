package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Names of checks. Those of resources are resource/<name> and foreign/<name>; those of DRA are beside PrefixSlices.
const (
	CheckProviderID = "identity/provider-id"
	CheckSystemUUID = "identity/system-uuid"
	CheckReady      = "node/ready"
	CheckBoot       = "boot/current"
	CheckKernel     = "software/kernel"
	CheckKubelet    = "software/kubelet"
	// PrefixResource and PrefixForeign begin the checks of what must, and what must not, be advertised.
	PrefixResource = "resource/"
	PrefixForeign  = "foreign/"
)

// check looks at one thing. It returns no result where there is nothing to compare.
type check func(Input) []v1alpha1.Check

// chain is every check in the order of importance: who the node is, whether its object is current, what runs on it,
// what it advertises.
var chain = []check{providerID, systemUUID, ready, boot, kernel, kubelet, labels, exact, cpu, memory, ephemeralStorage, published, deviceClasses, foreign, absent}

func checks(in Input) []v1alpha1.Check {
	in.inventory = takeInventory(in.Slices, in.Node)
	var out []v1alpha1.Check
	for _, c := range chain {
		out = append(out, c(in)...)
	}
	distinguish(out)
	soften(in, out)
	harden(in, out)
	explainWaiting(in, out)
	return out
}

// distinguish numbers checks of the same name: two promises may speak of the same thing, and names are the keys of a list
// in the API.
func distinguish(all []v1alpha1.Check) {
	seen := map[string]int{}
	for i, c := range all {
		seen[c.Name]++
		if n := seen[c.Name]; n > 1 {
			all[i].Name = fmt.Sprintf("%s#%d", c.Name, n)
		}
	}
}

// soften turns failures into waiting while the node's object is not current: after a boot, kubelet may not have spoken
// yet, and what its predecessor advertised is still there. Who the node is does not change by waiting.
func soften(in Input, all []v1alpha1.Check) {
	if current(in.Node) {
		return
	}
	for i, c := range all {
		if c.Result == v1alpha1.CheckFail && !strings.HasPrefix(c.Name, "identity/") && !unserved(in, c) {
			all[i].Result = v1alpha1.CheckWait
		}
	}
}

// unserved says whether a check fails because the tenant's API knows no ResourceSlices, whatever the node does.
func unserved(in Input, c v1alpha1.Check) bool {
	return !in.SlicesServed && strings.HasPrefix(c.Name, PrefixSlices)
}

// harden turns waiting into failure once the deadline has passed.
func harden(in Input, all []v1alpha1.Check) {
	if !overdue(in) {
		return
	}
	for i, c := range all {
		if c.Result == v1alpha1.CheckWait {
			all[i].Result = v1alpha1.CheckFail
		}
	}
}

func overdue(in Input) bool { return !in.Deadline.IsZero() && !in.Now.Before(in.Deadline) }

// current says whether kubelet keeps the node's object up to date.
func current(node *corev1.Node) bool {
	return readiness(node).Status == corev1.ConditionTrue && node.Status.NodeInfo.BootID != ""
}

func readiness(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{Status: corev1.ConditionUnknown, Message: "kubelet has not reported"}
}

func providerID(in Input) []v1alpha1.Check {
	return one(compare(CheckProviderID, in.Identity.ProviderID, in.Node.Spec.ProviderID, in.Node.Spec.ProviderID == in.Identity.ProviderID,
		"the Node was registered by another installation: on the node, providerID in /etc/kubernetes/kubelet.yaml; delete the Node object once that machine is off"))
}

func systemUUID(in Input) []v1alpha1.Check {
	if in.Identity.SystemUUID == "" {
		return nil
	}
	seen := in.Node.Status.NodeInfo.SystemUUID
	return one(compare(CheckSystemUUID, in.Identity.SystemUUID, seen, strings.EqualFold(seen, in.Identity.SystemUUID),
		"the Node is not the server that was installed: two machines use the same credentials or disk"))
}

func ready(in Input) []v1alpha1.Check {
	c := v1alpha1.Check{Name: CheckReady, Result: v1alpha1.CheckPass, Expected: "True"}
	r := readiness(in.Node)
	c.Observed = string(r.Status)
	if r.Status != corev1.ConditionTrue {
		c.Result = v1alpha1.CheckWait
		c.Hint = cmp.Or(v1alpha1.Truncate(r.Message, maxText), "kubectl describe node; on the node: journalctl -u kubelet")
	}
	return one(c)
}

// boot says which boot the verdict speaks of. Another boot starts a new verdict.
func boot(in Input) []v1alpha1.Check {
	id := in.Node.Status.NodeInfo.BootID
	if id == "" {
		return one(v1alpha1.Check{Name: CheckBoot, Result: v1alpha1.CheckWait, Expected: "a boot id", Hint: "kubelet has not reported which boot it is: journalctl -u kubelet on the node"})
	}
	return one(v1alpha1.Check{Name: CheckBoot, Result: v1alpha1.CheckPass, Expected: id, Observed: id})
}

func kernel(in Input) []v1alpha1.Check {
	want, seen := in.Expectation.Kernel, in.Node.Status.NodeInfo.KernelVersion
	if want == "" {
		return nil
	}
	return one(compare(CheckKernel, want, seen, leads(want, seen),
		"the kernel that runs is not the one that the OSImage names in os.kernel: the GPU driver was built for that one"))
}

// leads says whether a kernel release is the expected one or begins with its numbers: 6.1 leads 6.1.5-amd64, not 6.12.
func leads(want, seen string) bool {
	rest, ok := strings.CutPrefix(seen, want)
	return ok && (rest == "" || !unicode.IsDigit(rune(rest[0])) || !unicode.IsDigit(rune(want[len(want)-1])))
}

func kubelet(in Input) []v1alpha1.Check {
	want, seen := in.Expectation.Kubelet, strings.TrimPrefix(in.Node.Status.NodeInfo.KubeletVersion, "v")
	if want == "" {
		return nil
	}
	return one(compare(CheckKubelet, want, seen, seen == want, "the kubelet that runs is not the one that the OSImage names in software.kubelet"))
}

// labels compares what vendors' software found, on clusters that run it.
func labels(in Input) []v1alpha1.Check {
	var out []v1alpha1.Check
	for _, l := range in.Expectation.Labels {
		seen, ok := in.Node.Labels[l.Key]
		if !ok {
			continue
		}
		c := compare(l.Check, l.Value, seen, seen == l.Value, l.Hint)
		if slices.Contains(l.Passing, seen) {
			c.Result = v1alpha1.CheckWait
		}
		out = append(out, c)
	}
	return out
}

// maxText is the longest text, in bytes, that a verdict quotes of what a node says about itself. The node's object belongs to the tenant,
// the verdict is stored in the management cluster.
const maxText = 203

// compare fails on a difference, and waits for what was not reported yet.
func compare(name, expected, observed string, equal bool, hint string) v1alpha1.Check {
	c := v1alpha1.Check{Name: name, Result: v1alpha1.CheckPass, Expected: expected, Observed: v1alpha1.Truncate(observed, maxText)}
	if equal {
		return c
	}
	c.Hint, c.Result = hint, v1alpha1.CheckFail
	if observed == "" {
		c.Result = v1alpha1.CheckWait
	}
	return c
}

func one(c v1alpha1.Check) []v1alpha1.Check { return []v1alpha1.Check{c} }

// explainWaiting tells, where a resource or a driver's slices are missing or the network is not up, which of the tenant's
// DaemonSets the gate itself keeps off the node. Where else to look is of no use before those run.
func explainWaiting(in Input, all []v1alpha1.Check) {
	blocked := keptOff(in.DaemonSets, in.Node, in.Gate)
	i := slices.IndexFunc(all, needsPod)
	if len(blocked) == 0 || i < 0 || !gated(in.Node, in.Gate) {
		return
	}
	all[i].Hint = fmt.Sprintf("DaemonSets that fit this node and do not tolerate the gate %s, so that they cannot run: %s: add the toleration to those that the node needs",
		in.Gate, few(blocked))
}

// needsPod says whether a check may not pass because a pod does not run. A driver that publishes anything runs.
func needsPod(c v1alpha1.Check) bool {
	if c.Result == v1alpha1.CheckPass {
		return false
	}
	return c.Name == CheckReady || strings.HasPrefix(c.Name, PrefixResource) || strings.HasPrefix(c.Name, PrefixSlices) && c.Observed == ""
}
