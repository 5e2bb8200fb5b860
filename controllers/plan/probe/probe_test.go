package probe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

const (
	gpu  = "nvidia.com/gpu"
	hca  = "rdma/hca"
	boot = "boot-1"
)

// ready is a node that passes every other check and promises two GPUs and a NIC.
func ready(kind v1alpha1.ProbeKind) Input {
	return Input{
		Clock: watched.Clock{Now: start}, Spec: &v1alpha1.ProbeSpec{Kind: kind, Image: "cuda"}, BootID: boot, IsReady: true,
		Expectation: v1alpha1.NodeExpectation{Resources: []v1alpha1.ExpectedResource{
			{Name: "hugepages-1Gi", Quantity: resource.MustParse("1Gi")}, {Name: gpu, Quantity: resource.MustParse("2")}, {Name: hca, Quantity: resource.MustParse("1")},
		}},
	}
}

func run(target string, phase corev1.PodPhase, exit int32, message string) *Run {
	return &Run{Target: target, BootID: boot, Phase: phase, ExitCode: exit, Message: message, Created: start.Add(-time.Minute)}
}

func previous(admitted bool, age time.Duration, checks ...v1alpha1.Check) *v1alpha1.Verdict {
	at := metav1.NewMicroTime(start.Add(-age))
	return &v1alpha1.Verdict{Admitted: admitted, ProbedAt: &at, Checks: append([]v1alpha1.Check{{Name: "node/ready", Result: v1alpha1.CheckPass}}, checks...)}
}

func check(name string, result v1alpha1.CheckResult) v1alpha1.Check {
	return v1alpha1.Check{Name: Prefix + name, Result: result}
}

// text returns the decision as ACTION TARGET; and each check as NAME RESULT.
func text(d Decision) string {
	out := strings.TrimSpace(string(d.Action) + " " + d.Target.Name)
	for _, c := range d.Checks {
		out += fmt.Sprintf("; %s %s", strings.TrimPrefix(c.Name, Prefix), c.Result)
	}
	return out
}

func TestWhatIsAskedNextAndWhatAnEndMeans(t *testing.T) {
	const (
		list    = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n"
		partial = list + "  MIG 1g.10gb     Device  0: (UUID: MIG-1)\n"
	)
	command, smi := v1alpha1.ProbeCommand, v1alpha1.ProbeNvidiaSMI
	pass, fail, wait := v1alpha1.CheckPass, v1alpha1.CheckFail, v1alpha1.CheckWait
	for sentence, tt := range map[string]struct {
		kind   v1alpha1.ProbeKind
		change func(*Input)
		want   string
	}{
		"the first":                            {command, func(*Input) {}, "Create nvidia.com/gpu; nvidia.com/gpu Wait; rdma/hca Wait"},
		"NVIDIA's own only":                    {smi, func(*Input) {}, "Create nvidia.com/gpu; nvidia.com/gpu Wait"},
		"another check does not pass":          {smi, func(in *Input) { in.IsReady = false }, "Keep; nvidia.com/gpu Wait"},
		"others have their turn":               {smi, func(in *Input) { in.Others = MaxPods }, "Keep; nvidia.com/gpu Wait"},
		"a tenant's pod holds a device":        {smi, func(in *Input) { in.Holders = []string{"a/b"} }, "Keep; not-made Pass"},
		"it runs":                              {smi, func(in *Input) { in.Run = run(gpu, corev1.PodRunning, 0, "") }, "Keep; nvidia.com/gpu Wait"},
		"it runs, and a check fails":           {smi, func(in *Input) { in.Run = run(gpu, corev1.PodRunning, 0, ""); in.IsReady = false }, "Delete; nvidia.com/gpu Wait; pod Wait"},
		"it lists what was promised":           {smi, func(in *Input) { in.Run = run(gpu, corev1.PodSucceeded, 0, list) }, "Delete; nvidia.com/gpu Pass; pod Wait"},
		"it lists a GPU less":                  {smi, func(in *Input) { in.Run = run(gpu, corev1.PodSucceeded, 0, list[:40]) }, "Delete; nvidia.com/gpu Fail; pod Wait"},
		"it lists an instance":                 {smi, func(in *Input) { in.Run = run(gpu, corev1.PodSucceeded, 0, partial) }, "Delete; nvidia.com/gpu Fail; pod Wait"},
		"it fails":                             {smi, func(in *Input) { in.Run = run(gpu, corev1.PodFailed, 1, "no devices") }, "Delete; nvidia.com/gpu Fail; pod Wait"},
		"it takes too long":                    {smi, func(in *Input) { in.Run = run(gpu, corev1.PodPending, 0, ""); in.Now = start.Add(DefaultTimeout) }, "Delete; nvidia.com/gpu Fail; pod Wait"},
		"it is the last boot's":                {smi, func(in *Input) { in.Run = run(gpu, corev1.PodSucceeded, 0, list); in.Run.BootID = "boot-0" }, "Delete; nvidia.com/gpu Wait; pod Wait"},
		"it is being deleted":                  {smi, func(in *Input) { in.Run = run(gpu, corev1.PodRunning, 0, ""); in.Run.IsDeleted = true }, "Keep; nvidia.com/gpu Wait; pod Wait"},
		"the next":                             {command, func(in *Input) { in.Previous = previous(false, 0, check(gpu, pass), check("pod", wait)) }, "Create rdma/hca; nvidia.com/gpu Pass; rdma/hca Wait"},
		"all have passed":                      {command, func(in *Input) { in.Previous = previous(false, 0, check(gpu, pass), check(hca, pass)) }, "Keep; nvidia.com/gpu Pass; rdma/hca Pass"},
		"a failure stays":                      {smi, func(in *Input) { in.Previous = previous(false, RetryInterval-1, check(gpu, fail)) }, "Keep; nvidia.com/gpu Fail"},
		"and is tried again":                   {smi, func(in *Input) { in.Previous = previous(false, RetryInterval, check(gpu, fail)) }, "Create nvidia.com/gpu; nvidia.com/gpu Wait"},
		"a pod of a check that waited long":    {smi, func(in *Input) { in.Previous = previous(false, 0, check("pod", fail)) }, "Create nvidia.com/gpu; nvidia.com/gpu Wait"},
		"never on an admitted node":            {smi, func(in *Input) { in.Previous = previous(true, 0, check(gpu, pass)) }, "Keep; nvidia.com/gpu Pass"},
		"judged without, and the gate is off":  {smi, func(in *Input) { in.IsReady = false; in.Previous = previous(false, 0, check("not-made", pass)) }, "Keep; not-made Pass"},
		"judged without, and a pod left since": {smi, func(in *Input) { in.Previous = previous(false, 0, check("not-made", pass)) }, "Create nvidia.com/gpu; nvidia.com/gpu Wait"},
		"not where it was judged without":      {smi, func(in *Input) { in.Previous = previous(true, 0, check("not-made", pass)) }, "Keep; not-made Pass"},
		"the NodeType has none any more":       {smi, func(in *Input) { in.Spec, in.Run = nil, run(gpu, corev1.PodRunning, 0, "") }, "Delete; pod Wait"},
		"a command without a report":           {command, func(in *Input) { in.Run = run(gpu, corev1.PodSucceeded, 0, "412 GB/s") }, "Delete; nvidia.com/gpu Pass; rdma/hca Wait; pod Wait"},
		"a report": {command, func(in *Input) {
			in.Run = run(gpu, corev1.PodSucceeded, 0, "words\n"+`{"checks":[{"name":"nccl","result":"Pass"},{"name":"ecc","result":"Broken","message":"7"}]}`)
		}, "Delete; nvidia.com/gpu/1-nccl Pass; nvidia.com/gpu/2-ecc Fail; rdma/hca Wait; pod Wait"},
		"a report of a pod that failed": {command, func(in *Input) {
			in.Run = run(gpu, corev1.PodFailed, 2, `{"checks":[{"name":"nccl","result":"Pass"}]}`)
		}, "Delete; nvidia.com/gpu Fail; rdma/hca Wait; pod Wait"},
		"a report that is known": {command, func(in *Input) { in.Previous = previous(false, 0, check(gpu+"/1-nccl", pass), check(hca, pass)) }, "Keep; nvidia.com/gpu/1-nccl Pass; rdma/hca Pass"},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := ready(tt.kind)
			tt.change(&in)
			d := Decide(in)
			if got := text(d); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
			for _, c := range d.Checks {
				if c.Result != v1alpha1.CheckPass && c.Hint == "" && c.Expected != "" {
					t.Errorf("%+v does not say where to look", c)
				}
			}
		})
	}
}

func TestRightsThatAreMissingKeepANodeWaiting(t *testing.T) {
	d := Denied(previous(false, 0, check(gpu, v1alpha1.CheckPass), check("rights", v1alpha1.CheckFail)), "pods is forbidden")
	if got := text(d); got != "Keep; nvidia.com/gpu Pass; rights Wait" || d.ProbedAt == nil || d.Checks[1].Observed != "pods is forbidden" {
		t.Errorf("%s: %+v", got, d)
	}
	if got := text(Denied(nil, "x")); got != "Keep; rights Wait" {
		t.Error(got)
	}
}

func TestTargetsAreWhatAPodCanBeGiven(t *testing.T) {
	classes := func(names ...string) []v1alpha1.ExpectedSlices {
		var out []v1alpha1.ExpectedDeviceClass
		for _, n := range names {
			out = append(out, v1alpha1.ExpectedDeviceClass{Name: n, Count: 152})
		}
		return []v1alpha1.ExpectedSlices{{Driver: "gpu.nvidia.com", DeviceClasses: out}}
	}
	shared := v1alpha1.NodeExpectation{
		Resources: []v1alpha1.ExpectedResource{{Name: gpu, Quantity: resource.MustParse("32")}},
		Labels:    []v1alpha1.ExpectedLabel{{Key: "nvidia.com/gpu.replicas", Value: "4"}},
	}
	single := v1alpha1.NodeExpectation{
		Resources: []v1alpha1.ExpectedResource{{Name: gpu, Quantity: resource.MustParse("24")}},
		Labels:    []v1alpha1.ExpectedLabel{{Key: "nvidia.com/mig.strategy", Value: "single"}},
	}
	for _, tt := range []struct {
		kind v1alpha1.ProbeKind
		of   v1alpha1.NodeExpectation
		want string
	}{
		{v1alpha1.ProbeNvidiaSMI, shared, "[{nvidia.com/gpu false 1 false}]"},
		{v1alpha1.ProbeNvidiaSMI, single, "[{nvidia.com/gpu false 24 true}]"},
		{v1alpha1.ProbeNvidiaSMI, v1alpha1.NodeExpectation{Slices: classes("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")}, "[{gpu.nvidia.com true 32 false} {mig.nvidia.com true 1 true}]"},
		{v1alpha1.ProbeCommand, v1alpha1.NodeExpectation{Slices: classes("vfio.gpu.nvidia.com")}, "[{vfio.gpu.nvidia.com true 32 false}]"},
	} {
		if got := fmt.Sprint(Targets(tt.of, v1alpha1.ProbeSpec{Kind: tt.kind})); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// TestWhatAPodWritesDoesNotSwellTheVerdict: a pod is the tenant's, and a verdict is read on terminals.
func TestWhatAPodWritesDoesNotSwellTheVerdict(t *testing.T) {
	many := `{"checks":[` + strings.TrimSuffix(strings.Repeat(`{"name":"x","result":"Pass"},`, 50), ",") + `]}`
	for _, message := range []string{strings.Repeat("\x1b[31mred\x00\n", 1000), strings.Repeat("\xff", 5000), strings.Repeat("a\u202e", 9000), many} {
		in := ready(v1alpha1.ProbeCommand)
		in.Run = run(gpu, corev1.PodFailed, 1, message)
		for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
			in.Run.Phase = phase
			d := Decide(in)
			if len(d.Checks) > maxChecks+3 {
				t.Errorf("%d checks", len(d.Checks))
			}
			for _, c := range d.Checks {
				if len(c.Observed) > maxText+32 || strings.ContainsFunc(c.Observed, func(r rune) bool { return r < ' ' || r == 0x202e || r == 0xfffd }) {
					t.Errorf("%d bytes: %q", len(c.Observed), c.Observed)
				}
			}
		}
	}
}
