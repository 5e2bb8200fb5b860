package verdict

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func quantityOf(text string) *resource.Quantity { q := resource.MustParse(text); return &q }

// allocatableNode is a node of 96 CPUs and 1000Gi, that pods can have so much of.
func allocatableNode(cpu, memory string) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{
		Capacity:    corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("1000Gi"), "ephemeral-storage": resource.MustParse("1000Gi")},
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "ephemeral-storage": resource.MustParse("900Gi"), "pods": resource.MustParse("250")},
	}}
}

func TestAllocatableIsJudgedWithTheReservationInMind(t *testing.T) {
	const all = `{"kubeReserved": {"cpu": "1", "memory": "8Gi"}, "systemReserved": {"cpu": "500m", "memory": "2Gi"}, "evictionHard": {"memory.available": "1%"}}`
	promise := v1alpha1.NodeExpectation{CPU: quantityOf("96"), Memory: quantityOf("1000Gi")}
	for name, c := range map[string]struct {
		expectation v1alpha1.NodeExpectation
		kubelet     string
		node        *corev1.Node
		// want are the checks: name, result, what is expected.
		want []string
	}{
		"nothing is promised or set":               {node: allocatableNode("0", "0")},
		"settings of something else":               {kubelet: `{"podPidsLimit": 64, "kubeReserved": {"pid": "1000"}}`, node: allocatableNode("0", "0")},
		"the defaults":                             {promise, "", allocatableNode("95350m", "980Gi"), []string{"allocatable/cpu Pass 48 to 96", "allocatable/memory Pass 500Gi to 1000Gi"}},
		"nothing is left":                          {promise, "", allocatableNode("0", "0"), []string{"allocatable/cpu Fail 48 to 96", "allocatable/memory Fail 500Gi to 1000Gi"}},
		"more than there is":                       {promise, "", allocatableNode("97", "1001Gi"), []string{"allocatable/cpu Fail 48 to 96", "allocatable/memory Fail 500Gi to 1000Gi"}},
		"all is set, and is so":                    {promise, all, allocatableNode("94500m", "980Gi"), []string{"allocatable/cpu Pass 94500m", "allocatable/memory Pass 980Gi"}},
		"all is set and nothing promised":          {kubelet: all, node: allocatableNode("94500m", "980Gi"), want: []string{"allocatable/cpu Pass 94500m", "allocatable/memory Pass 980Gi"}},
		"the settings were not read":               {promise, all, allocatableNode("96", "999Gi"), []string{"allocatable/cpu Fail 94500m", "allocatable/memory Fail 980Gi"}},
		"a part was not read":                      {promise, all, allocatableNode("95", "990Gi"), []string{"allocatable/cpu Fail 94500m", "allocatable/memory Fail 980Gi"}},
		"more than all is kept":                    {promise, all, allocatableNode("94", "979Gi"), []string{"allocatable/cpu Fail 94500m", "allocatable/memory Fail 980Gi"}},
		"a part is set, the rest is the defaults'": {kubelet: `{"kubeReserved": {"memory": "8Gi"}}`, node: allocatableNode("96", "985Gi"), want: []string{"allocatable/memory Pass 500Gi to 992Gi"}},
		"a part is set and was not read":           {kubelet: `{"kubeReserved": {"memory": "8Gi"}}`, node: allocatableNode("96", "995Gi"), want: []string{"allocatable/memory Fail 500Gi to 992Gi"}},
		"CPUs by their numbers":                    {kubelet: `{"reservedSystemCPUs": "0-3, 48-51,95", "kubeReserved": {"cpu": "1"}}`, node: allocatableNode("87", "1Gi"), want: []string{"allocatable/cpu Pass 87"}},
		"CPUs by their numbers, not read":          {kubelet: `{"reservedSystemCPUs": "0-3", "kubeReserved": {"cpu": "1"}}`, node: allocatableNode("95", "1Gi"), want: []string{"allocatable/cpu Fail 92"}},
		"pods":                                     {kubelet: `{"maxPods": 250}`, node: allocatableNode("96", "1Gi"), want: []string{"allocatable/pods Pass 250"}},
		"pods, not read":                           {kubelet: `{"maxPods": 64}`, node: allocatableNode("96", "1Gi"), want: []string{"allocatable/pods Fail 64"}},
		"pods by the number of CPUs":               {kubelet: `{"maxPods": 900, "podsPerCore": 3}`, node: allocatableNode("96", "1Gi"), want: []string{"allocatable/pods Fail 288"}},
		"the disk": {kubelet: `{"kubeReserved": {"ephemeral-storage": "10Gi"}, "systemReserved": {"ephemeral-storage": "40Gi"}, "evictionHard": {"nodefs.available": "5%"}}`,
			node: allocatableNode("96", "1Gi"), want: []string{"allocatable/ephemeral-storage Pass 900Gi"}},
	} {
		var got []string
		for _, check := range checkAllocatable(Input{Expectation: c.expectation, Kubelet: []byte(c.kubelet), Node: c.node}) {
			got = append(got, check.Name+" "+string(check.Result)+" "+check.Expected)
			if (check.Result == v1alpha1.CheckPass) != (check.Hint == "") {
				t.Errorf("%s: %s says %q", name, check.Name, check.Hint)
			}
		}
		if strings.Join(got, ", ") != strings.Join(c.want, ", ") {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
	}
}

// TestHugepagesAreNoMemoryOfPods has 800Gi of huge pages, which kubelet takes from allocatable memory.
func TestHugepagesAreNoMemoryOfPods(t *testing.T) {
	node := allocatableNode("96", "190Gi")
	node.Status.Capacity["hugepages-1Gi"] = resource.MustParse("800Gi")
	in := Input{Expectation: v1alpha1.NodeExpectation{Memory: quantityOf("1000Gi")}, Node: node}
	if c := checkAllocatable(in); len(c) != 1 || c[0].Result != v1alpha1.CheckPass || c[0].Expected != "100Gi to 200Gi" {
		t.Errorf("%+v", c)
	}
	node.Status.Allocatable["memory"] = resource.MustParse("990Gi")
	if c := checkAllocatable(in); len(c) != 1 || c[0].Result != v1alpha1.CheckFail {
		t.Errorf("pods would be promised the huge pages too: %+v", c)
	}
}

func TestTheHintNamesTheFieldAndBothFigures(t *testing.T) {
	in := perfectInput()
	in.Kubelet = []byte(`{"kubeReserved": {"memory": "8Gi"}}`)
	in.Node.Status.Allocatable["memory"] = resource.MustParse("96Gi")
	d := Judge(in)
	for _, want := range []string{"allocatable/memory", "49664Mi to 89Gi", "observed 96Gi", "of a capacity of 97Gi", "spec.kubelet.kubeReserved.memory"} {
		if !strings.Contains(d.Message, want) {
			t.Errorf("the message lacks %q: %s", want, d.Message)
		}
	}
	if d.Verdict.Result != v1alpha1.CheckFail || d.Gate == LiftGate {
		t.Errorf("%s, gate %s", d.Verdict.Result, d.Gate)
	}
}
