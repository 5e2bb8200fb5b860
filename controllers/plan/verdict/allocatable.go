package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// reservable are the resources of which kubelet keeps a part from pods, with the threshold of evictionHard that counts as reserved
// (pkg/kubelet/cm/helpers.go, hardEvictionReservation).
var reservable = []struct {
	name     corev1.ResourceName
	eviction string
	promised func(v1alpha1.NodeExpectation) *resource.Quantity
}{
	{corev1.ResourceCPU, "", func(e v1alpha1.NodeExpectation) *resource.Quantity { return e.CPU }},
	{corev1.ResourceMemory, "memory.available", func(e v1alpha1.NodeExpectation) *resource.Quantity { return e.Memory }},
	{corev1.ResourceEphemeralStorage, "nodefs.available", func(e v1alpha1.NodeExpectation) *resource.Quantity { return e.EphemeralStorage }},
}

// rounding is by how much bytes of a percentage may differ: kubelet multiplies with a float32.
const rounding = 1 << 20

// reservation has the members of KubeletConfiguration from which allocatable follows.
type reservation struct {
	KubeReserved       map[string]string `json:"kubeReserved"`
	SystemReserved     map[string]string `json:"systemReserved"`
	EvictionHard       map[string]string `json:"evictionHard"`
	ReservedSystemCPUs string            `json:"reservedSystemCPUs"`
	MaxPods            int64             `json:"maxPods"`
	PodsPerCore        int64             `json:"podsPerCore"`
}

// checkAllocatable compares what pods can have with the capacity less what spec.kubelet reserves. Without it: kubelet does not read its settings, or the
// image's or cluster's own configuration reserves nearly everything; capacity is as promised, the node is admitted, and pods take the memory of the system,
// or none fits.
//
// A resource is judged if the NodeType promises it or reserves some of it. Allocatable must not be more than what spec.kubelet leaves. Where spec.kubelet
// sets every part, it must be that. Otherwise the rest is the defaults' or the cluster's to reserve, and at least half must be left.
func checkAllocatable(in Input) []v1alpha1.Check {
	var set reservation
	// What cannot be read was refused before a node was made of it.
	_ = json.Unmarshal(in.Kubelet, &set)
	var out []v1alpha1.Check
	for _, r := range reservable {
		capacity := in.Node.Status.Capacity[r.name]
		parts := set.parts(r.name, r.eviction, capacity)
		if r.promised(in.Expectation) == nil && parts.fields == nil || capacity.IsZero() {
			continue // checks of capacity wait for one that is promised and absent
		}
		usable := capacity.DeepCopy()
		if r.name == corev1.ResourceMemory {
			usable.Sub(hugepages(in.Node))
		}
		out = append(out, allocatableCheck(in.Node, r.name, usable, parts))
	}
	return append(out, checkMaxPods(in.Node, set)...)
}

// checkMaxPods compares how many pods the node takes with spec.kubelet, if that says it (pkg/kubelet/nodestatus/setters.go).
func checkMaxPods(node *corev1.Node, set reservation) []v1alpha1.Check {
	cpus, observed := node.Status.Capacity[corev1.ResourceCPU], node.Status.Allocatable[corev1.ResourcePods]
	if set.MaxPods <= 0 || cpus.IsZero() {
		return nil
	}
	expected := set.MaxPods
	if set.PodsPerCore > 0 {
		expected = min(expected, set.PodsPerCore*cpus.Value())
	}
	return single(newCheck(PrefixAllocatable+string(corev1.ResourcePods), strconv.FormatInt(expected, 10), observed.String(), observed.Value() == expected,
		"kubelet does not read spec.kubelet.maxPods, or something wins over it. "+whereSettingsAre))
}

// whereSettingsAre is where to look when kubelet does not do what its settings say.
const whereSettingsAre = "On the node: systemctl cat kubelet, for its --config-dir; ls /etc/kubernetes/kubelet.conf.d; journalctl -u kubelet"

// parts are what spec.kubelet says of the reservation of one resource.
type parts struct {
	// sum of what is reserved.
	sum resource.Quantity
	// fields that say so; nil: none does.
	fields []string
	// complete is true when nothing else can reserve more.
	complete bool
}

// parts returns what spec.kubelet says of a resource.
func (r reservation) parts(name corev1.ResourceName, eviction string, capacity resource.Quantity) parts {
	if name == corev1.ResourceCPU && r.ReservedSystemCPUs != "" {
		// They replace the CPUs of both other members (cmd/kubelet/app/server.go).
		return parts{*resource.NewQuantity(countCPUs(r.ReservedSystemCPUs), resource.DecimalSI), []string{"spec.kubelet.reservedSystemCPUs"}, true}
	}
	members := []struct {
		field, text string
	}{{"kubeReserved." + string(name), r.KubeReserved[string(name)]}, {"systemReserved." + string(name), r.SystemReserved[string(name)]}}
	if eviction != "" {
		members = append(members, struct{ field, text string }{"evictionHard." + eviction, r.EvictionHard[eviction]})
	}
	var out parts
	for _, m := range members {
		if quantity, isSet := reservedOf(m.text, capacity); isSet {
			out.sum.Add(quantity)
			out.fields = append(out.fields, "spec.kubelet."+m.field)
		}
	}
	out.complete = len(out.fields) == len(members)
	return out
}

// reservedOf returns a quantity, or a percentage of the capacity.
func reservedOf(text string, capacity resource.Quantity) (q resource.Quantity, isSet bool) {
	if share, isShare := strings.CutSuffix(text, "%"); isShare {
		percent, err := strconv.ParseFloat(share, 64)
		return *resource.NewQuantity(int64(float64(capacity.Value())*percent/100), capacity.Format), err == nil
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// countCPUs returns the number of CPUs in a list such as 0-3,8 (cpuset(7), "List format").
func countCPUs(list string) int64 {
	var n int64
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, errFirst := strconv.ParseInt(first, 10, 32)
		b, errLast := strconv.ParseInt(last, 10, 32)
		switch {
		case isRange && errFirst == nil && errLast == nil && b >= a:
			n += b - a + 1
		case !isRange && errFirst == nil:
			n++
		}
	}
	return n
}

// hugepages returns the memory that is kept for huge pages, which kubelet takes from allocatable memory (pkg/kubelet/nodestatus/setters.go).
func hugepages(node *corev1.Node) resource.Quantity {
	var sum resource.Quantity
	for name, quantity := range node.Status.Capacity {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			sum.Add(quantity)
		}
	}
	return sum
}

func allocatableCheck(node *corev1.Node, name corev1.ResourceName, usable resource.Quantity, p parts) v1alpha1.Check {
	capacity, observed := node.Status.Capacity[name], node.Status.Allocatable[name]
	most := usable.DeepCopy()
	most.Sub(p.sum)
	least := most.DeepCopy()
	if !p.complete {
		least = *resource.NewMilliQuantity(usable.MilliValue()/2, usable.Format)
	}
	from := cmp.Or(strings.Join(p.fields, ", "), "what kubelet reserves by default")
	c := v1alpha1.Check{Name: PrefixAllocatable + string(name), Result: v1alpha1.CheckPass, Expected: expectedRange(least, most), Observed: observed.String()}
	slack := *resource.NewQuantity(rounding, resource.BinarySI)
	if name == corev1.ResourceCPU {
		slack = resource.Quantity{}
	}
	most.Add(slack)
	least.Sub(slack)
	switch {
	case observed.Cmp(most) > 0:
		c.Result = v1alpha1.CheckFail
		c.Hint = fmt.Sprintf("of a capacity of %s kubelet does not keep what %s says. %s", capacity.String(), from, whereSettingsAre)
	case observed.Cmp(least) < 0 || observed.Sign() <= 0:
		c.Result = v1alpha1.CheckFail
		c.Hint = fmt.Sprintf("of a capacity of %s more is kept from pods than %s says: look for kubeReserved, systemReserved and evictionHard in kubelet's --config on the node, in the ConfigMap "+
			"kube-system/kubelet-config of a cluster that kubeadm made, and in spec.kubelet of the NodeType", capacity.String(), from)
	}
	return c
}

// expectedRange is the text of a range, or of one quantity.
func expectedRange(least, most resource.Quantity) string {
	if least.Cmp(most) == 0 {
		return most.String()
	}
	return least.String() + " to " + most.String()
}
