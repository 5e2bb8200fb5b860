package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

const (
	gateKey = "ingot.dev/unvalidated"
	gpu     = corev1.ResourceName("nvidia.com/gpu")
	mig     = corev1.ResourceName("nvidia.com/mig-1g.10gb")
)

// perfect is a gated node that shows exactly what was promised.
func perfectInput() Input {
	quantity := func(s string) *resource.Quantity { q := resource.MustParse(s); return &q }
	return Input{
		Clock: watched.Clock{Now: start},
		Expectation: v1alpha1.NodeExpectation{
			Resources: []v1alpha1.ExpectedResource{{Name: gpu, Quantity: resource.MustParse("8"), Waits: true, Hint: "look at nvidia-smi -L"}},
			CPU:       quantity("96"), Memory: quantity("100Gi"), EphemeralStorage: quantity("1Ti"),
			AbsentPrefixes: []string{"amd.com/", "nvidia.com/"}, Kernel: "6.12.107", Kubelet: "1.37.0",
			Labels: []v1alpha1.ExpectedLabel{{Check: "software/gpu-driver", Key: "nvidia.com/cuda.driver-version.full", Value: "550.163.01", Hint: "hold the driver"}},
		},
		Identity: Identity{Claim: nodeidentity.Claim{MachineUID: "u", Attempt: 1, SystemUUID: "4c4c4544-0042-3010-8053-b8c04f334432"}, Revision: "h100-a"},
		Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-1", Labels: map[string]string{"pool": "gpu"}},
			Spec: corev1.NodeSpec{ProviderID: "ingot://u/1", Taints: []corev1.Taint{
				{Key: "team", Effect: corev1.TaintEffectNoSchedule}, {Key: gateKey, Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{
				Capacity:    corev1.ResourceList{gpu: resource.MustParse("8"), "cpu": resource.MustParse("96"), "memory": resource.MustParse("97Gi"), "ephemeral-storage": resource.MustParse("2Ti")},
				Allocatable: corev1.ResourceList{gpu: resource.MustParse("8"), "cpu": resource.MustParse("94"), "memory": resource.MustParse("80Gi"), "ephemeral-storage": resource.MustParse("1800Gi")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				NodeInfo: corev1.NodeSystemInfo{BootID: "boot-1", SystemUUID: "4C4C4544-0042-3010-8053-B8C04F334432",
					KernelVersion: "6.12.107-amd64", KubeletVersion: "v1.37.0"},
			},
		},
		Gate: gateKey, Settle: 30 * time.Second, OnFailure: v1alpha1.OnFailureHold,
	}
}

func gpus(in *Input, capacity, allocatable string) {
	in.Node.Status.Capacity[gpu], in.Node.Status.Allocatable[gpu] = resource.MustParse(capacity), resource.MustParse(allocatable)
}

func ungate(in *Input) { in.Node.Spec.Taints = in.Node.Spec.Taints[:1] }

func notReady(in *Input) { in.Node.Status.Conditions[0].Status = corev1.ConditionUnknown }

func TestEveryCheck(t *testing.T) {
	// want is the check that decides: name, result, observed. Everything else passes.
	tests := []struct {
		sentence string
		change   func(*Input)
		name     string
		result   v1alpha1.CheckResult
		observed string
	}{
		{"a missing GPU waits", func(in *Input) { gpus(in, "7", "7") }, "resource/nvidia.com/gpu", v1alpha1.CheckWait, "7"},
		{"an unhealthy GPU waits", func(in *Input) { gpus(in, "8", "7") }, "resource/nvidia.com/gpu", v1alpha1.CheckWait, "capacity 8, allocatable 7"},
		{"a resource that is not there counts as 0", func(in *Input) { delete(in.Node.Status.Capacity, gpu); delete(in.Node.Status.Allocatable, gpu) }, "resource/nvidia.com/gpu", v1alpha1.CheckWait, "0"},
		{"a missing GPU fails after the deadline", func(in *Input) { gpus(in, "7", "7"); in.Deadline = start }, "resource/nvidia.com/gpu", v1alpha1.CheckFail, "7"},
		{"more GPUs than promised fail at once", func(in *Input) { gpus(in, "16", "16") }, "resource/nvidia.com/gpu", v1alpha1.CheckFail, "16"},
		{"more GPUs than promised only wait while the node is not Ready", func(in *Input) { gpus(in, "16", "16"); notReady(in) }, "resource/nvidia.com/gpu", v1alpha1.CheckWait, "16"},
		{"a MIG resource beside whole GPUs fails at once", func(in *Input) { in.Node.Status.Capacity[mig] = resource.MustParse("7") }, "foreign/nvidia.com/mig-1g.10gb", v1alpha1.CheckFail, "7"},
		{"a foreign resource that is only allocatable fails too", func(in *Input) { in.Node.Status.Allocatable["amd.com/gpu"] = resource.MustParse("1") }, "foreign/amd.com/gpu", v1alpha1.CheckFail, "1"},
		{"a missing CPU fails at once", func(in *Input) { in.Node.Status.Capacity["cpu"] = resource.MustParse("95") }, "resource/cpu", v1alpha1.CheckFail, "95"},
		{"CPUs that kubelet has not measured wait", func(in *Input) { delete(in.Node.Status.Capacity, "cpu") }, "resource/cpu", v1alpha1.CheckWait, ""},
		{"memory below 95% fails", func(in *Input) { in.Node.Status.Capacity["memory"] = resource.MustParse("94Gi") }, "resource/memory", v1alpha1.CheckFail, "94Gi"},
		{"memory above what was promised fails", func(in *Input) { in.Node.Status.Capacity["memory"] = resource.MustParse("101Gi") }, "resource/memory", v1alpha1.CheckFail, "101Gi"},
		{"a root file system that did not grow fails", func(in *Input) { in.Node.Status.Capacity["ephemeral-storage"] = resource.MustParse("10Gi") }, "resource/ephemeral-storage", v1alpha1.CheckFail, "10Gi"},
		{"another installation's Node fails", func(in *Input) { in.Node.Spec.ProviderID = "ingot://u/0" }, "identity/provider-id", v1alpha1.CheckFail, "ingot://u/0"},
		{"another server fails, Ready or not", func(in *Input) { in.Node.Status.NodeInfo.SystemUUID = "x"; notReady(in) }, "identity/system-uuid", v1alpha1.CheckFail, "x"},
		{"a node that is not Ready waits", notReady, "node/ready", v1alpha1.CheckWait, "Unknown"},
		{"a node that has not said which boot it is waits", func(in *Input) { in.Node.Status.NodeInfo.BootID = "" }, "boot/current", v1alpha1.CheckWait, ""},
		{"another kernel fails", func(in *Input) { in.Node.Status.NodeInfo.KernelVersion = "6.12.1070-amd64" }, "software/kernel", v1alpha1.CheckFail, "6.12.1070-amd64"},
		{"another kubelet fails", func(in *Input) { in.Node.Status.NodeInfo.KubeletVersion = "v1.36.4" }, "software/kubelet", v1alpha1.CheckFail, "1.36.4"},
		{"another driver fails where feature discovery shows it", func(in *Input) { in.Node.Labels["nvidia.com/cuda.driver-version.full"] = "570.1.2" }, "software/gpu-driver", v1alpha1.CheckFail, "570.1.2"},
		{"a label that tells of work under way waits", setPendingLabel, "software/gpu-driver", v1alpha1.CheckWait, "pending"},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			in := perfectInput()
			tt.change(&in)
			d := Judge(in)
			c := find(t, d, tt.name)
			if c.Result != tt.result || c.Observed != tt.observed {
				t.Errorf("%s is %s with observed %q, want %s with %q", tt.name, c.Result, c.Observed, tt.result, tt.observed)
			}
			if c.Hint == "" {
				t.Error("the check does not say where to look")
			}
			if d.Verdict.Result == v1alpha1.CheckPass || d.Gate == LiftGate {
				t.Errorf("the verdict is %s and the gate %s although %s", d.Verdict.Result, d.Gate, tt.sentence)
			}
		})
	}
}

func TestChecksPassWithinTheirRules(t *testing.T) {
	for sentence, change := range map[string]func(*Input){
		"everything as promised": func(*Input) {},
		"memory of exactly 95%":  func(in *Input) { in.Node.Status.Capacity["memory"] = resource.MustParse("95Gi") },
		"memory of exactly 100%": func(in *Input) { in.Node.Status.Capacity["memory"] = resource.MustParse("100Gi") },
		"a kubelet that reserves nothing": func(in *Input) {
			for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage"} {
				in.Node.Status.Allocatable[name] = in.Node.Status.Capacity[name].DeepCopy()
			}
		},
		"no inventory by the agent":             func(in *Input) { in.Identity.Claim.SystemUUID = ""; in.Node.Status.NodeInfo.SystemUUID = "anything" },
		"a foreign resource at 0":               func(in *Input) { in.Node.Status.Capacity[mig] = resource.MustParse("0") },
		"resources of no accelerator":           func(in *Input) { in.Node.Status.Capacity["rdma/hca"] = resource.MustParse("4") },
		"a kernel expectation of leading parts": func(in *Input) { in.Expectation.Kernel = "6.12" },
		"no kernel expectation":                 func(in *Input) { in.Expectation.Kernel = ""; in.Node.Status.NodeInfo.KernelVersion = "x" },
		"the driver that was promised":          func(in *Input) { in.Node.Labels["nvidia.com/cuda.driver-version.full"] = "550.163.01" },
	} {
		t.Run(sentence, func(t *testing.T) {
			in := perfectInput()
			change(&in)
			if d := Judge(in); d.Verdict.Result != v1alpha1.CheckPass {
				t.Errorf("the verdict is %s: %s", d.Verdict.Result, d.Message)
			}
		})
	}
}

func TestAResidueIsReported(t *testing.T) {
	in := perfectInput()
	in.Node.Status.Capacity[mig] = resource.MustParse("0")
	if c := find(t, Judge(in), "foreign/nvidia.com/mig-1g.10gb"); !strings.Contains(c.Observed, "residue") {
		t.Errorf("observed %q does not mention the residue", c.Observed)
	}
}

func TestWhatOtherPluginsAdvertiseIsListedAndNotJudged(t *testing.T) {
	in := perfectInput()
	for name, quantity := range map[corev1.ResourceName]string{
		"nvidia.com/hostdev": "8", "nvidia.com/sriov_rdma_rail0": "16", "amd.com/nic": "2", "rdma/hca_shared": "63", "nvidia.com/idle": "0", "node.kubernetes.io/x": "1", "hugepages-2Mi": "1Gi",
	} {
		in.Node.Status.Capacity[name], in.Node.Status.Allocatable[name] = resource.MustParse(quantity), resource.MustParse(quantity)
	}
	d := Judge(in)
	c := find(t, d, CheckUnjudged)
	if want := "amd.com/nic 2, nvidia.com/hostdev 8, nvidia.com/sriov_rdma_rail0 16, rdma/hca_shared 63"; c.Observed != want || c.Result != v1alpha1.CheckPass || d.Verdict.Result != v1alpha1.CheckPass {
		t.Errorf("%s, listed %q (%s), want %q", d.Verdict.Result, c.Observed, c.Result, want)
	}
	in.Expectation.Resources = append(in.Expectation.Resources, v1alpha1.ExpectedResource{Name: "nvidia.com/hostdev", Quantity: resource.MustParse("4"), Waits: true})
	d = Judge(in)
	if c := find(t, d, "resource/nvidia.com/hostdev"); c.Result != v1alpha1.CheckFail || strings.Contains(find(t, d, CheckUnjudged).Observed, "hostdev") {
		t.Errorf("one that is promised is not judged: %+v", c)
	}
	for i := range 1000 {
		in.Node.Status.Capacity[corev1.ResourceName(fmt.Sprintf("nvidia.com/port-%03d", i))] = resource.MustParse("1")
	}
	if c := find(t, Judge(in), CheckUnjudged); len(c.Observed) > maxText {
		t.Errorf("%d bytes are listed", len(c.Observed))
	}
}

func TestWhatATenantPutsOnANodeDoesNotSwellTheVerdict(t *testing.T) {
	in := perfectInput()
	for i := range 500 {
		in.Node.Status.Capacity[corev1.ResourceName(fmt.Sprintf("nvidia.com/mig-a%03d", i))] = resource.MustParse("0")
	}
	in.Node.Status.Capacity["nvidia.com/mig-zebra"] = resource.MustParse("1")
	in.Node.Spec.ProviderID = strings.Repeat("x", 1<<20)
	d := Judge(in)
	if c := find(t, d, "foreign/nvidia.com/mig-zebra"); c.Result != v1alpha1.CheckFail {
		t.Errorf("what fails was left out: %+v", c)
	}
	if text := fmt.Sprint(d); len(text) > 16<<10 {
		t.Errorf("the decision has %d bytes", len(text))
	}
}

// previous is a verdict on the perfect node that was written age ago.
func previous(result v1alpha1.CheckResult, age time.Duration, admitted bool) *v1alpha1.Verdict {
	since := metav1.NewMicroTime(start.Add(-age))
	return &v1alpha1.Verdict{Result: result, Since: &since, Admitted: admitted, NodeUID: "node-1", BootID: "boot-1", Revision: "h100-a"}
}

func TestTheGate(t *testing.T) {
	const minute = time.Minute
	tests := []struct {
		sentence string
		change   func(*Input)
		gate     GateAction
		admitted bool
		reason   string
		events   string
	}{
		{"the first passing verdict settles behind the gate", func(*Input) {}, KeepGate, false, "Settling", ""},
		{"a passing verdict that has not settled keeps the gate", func(in *Input) { in.Previous = previous("Pass", 29*time.Second, false) }, KeepGate, false, "Settling", ""},
		{"a settled verdict lifts the gate and is not admitted before it was seen off", func(in *Input) { in.Previous = previous("Pass", 30*time.Second, false) }, LiftGate, false, "Settling", ""},
		{"the gate seen off after a settled verdict admits", func(in *Input) { in.Previous = previous("Pass", minute, false); ungate(in) }, KeepGate, true, "Validated", ""},
		{"an admitted node stays admitted, silently", func(in *Input) { in.Previous = previous("Pass", minute, true); ungate(in) }, KeepGate, true, "Validated", ""},
		{"a longer settle time does not gate an admitted node", func(in *Input) { in.Previous = previous("Pass", minute, true); in.Settle = time.Hour; ungate(in) }, KeepGate, true, "Validated", ""},
		{"a node first seen without the gate is gated", ungate, PlaceGate, false, "GateMissed", "GateMissed!"},
		{"a node that loses its gate while it waits is gated", func(in *Input) { in.Previous = previous("Wait", minute, false); ungate(in) }, PlaceGate, false, "GateMissed", "GateMissed!"},
		{"a node that loses its gate while it settles is gated", func(in *Input) { in.Previous = previous("Pass", time.Second, false); ungate(in) }, PlaceGate, false, "GateMissed", "GateMissed!"},
		{"a reboot gates an admitted node", func(in *Input) {
			in.Previous = previous("Pass", minute, true)
			ungate(in)
			in.Node.Status.NodeInfo.BootID = "boot-2"
		}, PlaceGate, false, "NodeRebooted", "NodeRebooted!"},
		{"a reboot starts the settling again", func(in *Input) {
			in.Previous = previous("Pass", minute, false)
			in.Node.Status.NodeInfo.BootID = "boot-2"
		}, KeepGate, false, "NodeRebooted", "NodeRebooted!"},
		{"another Node object of the name starts again", func(in *Input) {
			in.Previous = previous("Pass", minute, true)
			in.Node.UID = "node-2"
		}, KeepGate, false, "Settling", ""},
		{"another Node object without the gate is gated, whatever was said of its predecessor", func(in *Input) {
			in.Previous = previous("Pass", minute, true)
			in.Node.UID = "node-2"
			ungate(in)
		}, PlaceGate, false, "GateMissed", "GateMissed!"},
		{"another revision starts again", func(in *Input) {
			in.Previous = previous("Pass", minute, false)
			in.Identity.Revision = "h100-b"
		}, KeepGate, false, "Settling", ""},
		{"a GPU lost gates an admitted node", func(in *Input) {
			in.Previous = previous("Pass", minute, true)
			ungate(in)
			gpus(in, "8", "7")
		}, PlaceGate, false, "ResourcesMissing", "ResourcesMissing!"},
		{"a GPU lost between the lifting and its confirmation gates too", func(in *Input) {
			in.Previous = previous("Pass", minute, false)
			ungate(in)
			gpus(in, "7", "7")
		}, PlaceGate, false, "ResourcesMissing", ""},
		{"an admitted node that stops being Ready is gated, so that it comes back gated", func(in *Input) {
			in.Previous = previous("Pass", minute, true)
			ungate(in)
			notReady(in)
		}, PlaceGate, false, "ChecksWaiting", "ChecksWaiting!"},
		{"the gate put back on an admitted node must be earned again", func(in *Input) { in.Previous = previous("Pass", minute, true) }, KeepGate, false, "Settling", ""},
		{"a failure keeps the gate and is told once", func(in *Input) { in.Previous = previous("Wait", minute, false); gpus(in, "9", "9") }, KeepGate, false, "ChecksFailed", "ChecksFailed!"},
		{"a failure that lasts is not told again", func(in *Input) { in.Previous = previous("Fail", minute, false); gpus(in, "9", "9") }, KeepGate, false, "ChecksFailed", ""},
		{"what waits past the deadline has timed out", func(in *Input) {
			in.Previous = previous("Wait", minute, false)
			in.Deadline = start.Add(-time.Second)
			gpus(in, "7", "7")
		}, KeepGate, false, "ValidationTimedOut", "ValidationTimedOut!"},
		{"a node that recovers after the deadline settles", func(in *Input) {
			in.Previous = previous("Fail", minute, false)
			in.Deadline = start.Add(-time.Second)
		}, KeepGate, false, "Settling", ""},
		{"Observe lifts the gate at the join although a GPU is missing", func(in *Input) {
			in.OnFailure = v1alpha1.OnFailureObserve
			gpus(in, "7", "7")
		}, LiftGate, false, "ObserveOnly", ""},
		{"Observe never places the gate", func(in *Input) {
			in.OnFailure = v1alpha1.OnFailureObserve
			in.Previous = previous("Pass", minute, true)
			ungate(in)
			gpus(in, "7", "7")
		}, KeepGate, false, "ObserveOnly", "ObserveOnly!"},
		{"Observe admits what passes and settled", func(in *Input) {
			in.OnFailure = v1alpha1.OnFailureObserve
			in.Previous = previous("Pass", minute, false)
			ungate(in)
		}, KeepGate, true, "Validated", ""},
		{"a settle time of nothing lifts only after the verdict was written", func(in *Input) { in.Settle = 0 }, KeepGate, false, "Settling", ""},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			in := perfectInput()
			tt.change(&in)
			d := Judge(in)
			got := fmt.Sprintf("%s admitted=%v %s events=%s", d.Gate, d.Verdict.Admitted, d.Reason, eventsText(d.Events))
			want := fmt.Sprintf("%s admitted=%v %s events=%s", tt.gate, tt.admitted, tt.reason, tt.events)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if (d.Status == metav1.ConditionTrue) != tt.admitted {
				t.Errorf("Validated is %s, admitted is %v", d.Status, tt.admitted)
			}
		})
	}
}

func eventsText(events []event.Event) string {
	var out []string
	for _, e := range events {
		if e.Type == corev1.EventTypeWarning {
			e.Reason += "!"
		}
		out = append(out, e.Reason)
	}
	return strings.Join(out, " ")
}

// Whatever happens, a gate that is off was earned: no sequence of changes to the node leaves it off for longer than one
// look, unless every check passed for the settle time on that boot of that Node.
func TestNoHistoryLeavesANodeOpenThatDidNotEarnIt(t *testing.T) {
	changes := []func(*Input){
		func(*Input) {}, func(in *Input) { gpus(in, "7", "7") }, func(in *Input) { gpus(in, "8", "8") }, func(in *Input) { gpus(in, "9", "9") },
		func(in *Input) { in.Node.Status.NodeInfo.BootID += "x" }, func(in *Input) { in.Node.UID += "x" }, notReady,
		func(in *Input) { in.Node.Status.Conditions[0].Status = corev1.ConditionTrue }, func(in *Input) { in.Now = in.Now.Add(20 * time.Second) },
		func(in *Input) { in.Now = in.Now.Add(20 * time.Second) },
	}
	for seed := range 400 {
		in, state := perfectInput(), uint64(seed)*2654435761+1
		good := in.Now
		identity := ""
		for range 60 {
			state = state*6364136223846793005 + 1442695040888963407
			changes[(state>>33)%uint64(len(changes))](&in)
			d := Judge(in)
			if id := string(d.Verdict.NodeUID) + d.Verdict.BootID; d.Verdict.Result != v1alpha1.CheckPass || id != identity {
				good, identity = in.Now, id
			}
			apply(&in, d)
			in.Previous = &d.Verdict
			open := !HasGate(in.Node, gateKey)
			if open && (d.Verdict.Result != v1alpha1.CheckPass || in.Now.Sub(good) < in.Settle) {
				t.Fatalf("seed %d: the node is open with result %s, %s after it became good: %s", seed, d.Verdict.Result, in.Now.Sub(good), d.Message)
			}
		}
	}
}

func apply(in *Input, d Decision) {
	switch d.Gate {
	case LiftGate:
		ungate(in)
	case PlaceGate:
		in.Node.Spec.Taints = append(in.Node.Spec.Taints[:1:1], corev1.Taint{Key: gateKey, Effect: corev1.TaintEffectNoSchedule})
	}
}

func TestTheSameInputGivesTheSameDecision(t *testing.T) {
	in := perfectInput()
	in.Node.Status.Capacity[mig] = resource.MustParse("3")
	in.Node.Status.Capacity["amd.com/gpu"] = resource.MustParse("3")
	first := Judge(in)
	for range 50 {
		if diff := cmp.Diff(first, Judge(in)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestAWaitingVerdictNamesTheDaemonSetsThatTheGateKeepsOff(t *testing.T) {
	set := func(name string, change func(*corev1.PodSpec)) appsv1.DaemonSet {
		s := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu", Name: name}}
		change(&s.Spec.Template.Spec)
		return s
	}
	in := perfectInput()
	gpus(&in, "0", "0")
	in.DaemonSets = []appsv1.DaemonSet{
		set("blocked", func(*corev1.PodSpec) {}),
		set("elsewhere", func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "cpu"} }),
		set("tolerant", func(p *corev1.PodSpec) {
			p.Tolerations = []corev1.Toleration{{Key: gateKey, Operator: corev1.TolerationOpExists}}
		}),
		set("tolerates-all", func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }),
		set("tolerates-by-value", func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: gateKey}} }),
		set("wrong-effect", func(p *corev1.PodSpec) {
			p.Tolerations = []corev1.Toleration{{Key: gateKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
		}),
		set("wrong-affinity", func(p *corev1.PodSpec) {
			p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"gpu"}}}}}}}}
		}),
	}
	hint := find(t, Judge(in), "resource/nvidia.com/gpu").Hint
	want := "DaemonSets that fit this node and do not tolerate the gate " + gateKey + ", so that they cannot run: gpu/blocked, gpu/tolerates-by-value, gpu/wrong-effect: " +
		"add the toleration {key: " + gateKey + ", operator: Exists, effect: NoSchedule} to those that the node needs"
	if hint != want {
		t.Errorf("hint %q, expected %q", hint, want)
	}
	if got := Judge(in).Message; got != "resource/nvidia.com/gpu: expected 8, observed 0; "+want {
		t.Errorf("message %q", got)
	}
	ungate(&in)
	if hint := find(t, Judge(in), "resource/nvidia.com/gpu").Hint; strings.Contains(hint, "blocked") {
		t.Errorf("hint %q blames the gate of a node that has none", hint)
	}
}

func TestALookIsTakenWhenTimeAloneChangesTheDecision(t *testing.T) {
	for sentence, tt := range map[string]struct {
		change func(*Input)
		want   time.Duration
	}{
		"settling":                      {func(in *Input) { in.Previous = previous("Pass", 10*time.Second, false) }, 20 * time.Second},
		"waiting":                       {func(in *Input) { gpus(in, "7", "7") }, waitInterval},
		"waiting shortly before":        {func(in *Input) { gpus(in, "7", "7"); in.Deadline = start.Add(time.Second) }, time.Second},
		"failing":                       {func(in *Input) { gpus(in, "9", "9") }, failInterval},
		"admitted":                      {func(in *Input) { in.Previous = previous("Pass", time.Minute, true); ungate(in) }, 0},
		"lifting, should an event fail": {func(in *Input) { in.Previous = previous("Pass", time.Minute, false) }, waitInterval},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := perfectInput()
			tt.change(&in)
			if got := Judge(in).RequeueAfter; got != tt.want {
				t.Errorf("looks again after %s, want %s", got, tt.want)
			}
		})
	}
}

func find(t *testing.T, d Decision, name string) v1alpha1.Check {
	t.Helper()
	for _, c := range d.Verdict.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %s in %+v", name, d.Verdict.Checks)
	return v1alpha1.Check{}
}
