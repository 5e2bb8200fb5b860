package watched_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/probe"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// use is one thing that follows from a stored time when enough has passed since.
type use struct {
	// field is what is stored: TYPE.FIELD of the API.
	field string
	// what follows.
	what string
	// after is how much time must have passed.
	after time.Duration
	// isFinal is true for what cannot be undone: it must not follow from a clock that was set.
	isFinal bool
	// follows reports whether it does.
	follows func(stored time.Time, clock watched.Clock) bool
}

func micro(at time.Time) metav1.MicroTime { return metav1.NewMicroTime(at) }

// inPhase is a Machine that has been in the phase since then.
func inPhase(phase v1alpha1.MachinePhase, since time.Time) v1alpha1.MachineStatus {
	return v1alpha1.MachineStatus{Phase: phase, Timeline: []v1alpha1.PhaseEntry{{Phase: phase, At: micro(since)}}}
}

// failedAttempt is the host of an inspection that failed then.
func failedAttempt(at time.Time, clock watched.Clock) host.Facts {
	ended := micro(at)
	return host.Facts{
		Clock: clock, Timeouts: host.DefaultTimeouts(), Host: host.Host{Generation: 1, Status: host.Status{State: metal3.StateInspecting, OperationalStatus: metal3.OperationalStatusOK}},
		Record: v1alpha1.HostRecordStatus{Failures: 1, Power: &v1alpha1.HostPower{State: string(hardware.PowerOff), ObservedGeneration: 1, ObservedAt: ended}, Wanted: &v1alpha1.WantedAttempt{
			Number: 1, Operation: string(hardware.OpInspect), Since: ended, Deadline: ended, EndedAt: &ended, Outcome: v1alpha1.AttemptFailed, Step: string(hardware.StepBooting), Reason: string(hardware.ReasonAgentMissing),
		}},
		Observed: &hardware.Observation{Power: hardware.PowerOff},
	}
}

// passing is a node that passed its checks at that time.
func passing(at time.Time, clock watched.Clock) verdict.Input {
	since := micro(at)
	return verdict.Input{
		Clock: clock, Settle: 30 * time.Second, Gate: "ingot.dev/unvalidated", OnFailure: v1alpha1.OnFailureHold,
		Identity: verdict.Identity{Claim: nodeidentity.Claim{MachineUID: "m", Attempt: 1}, Revision: "r"},
		Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}, Spec: corev1.NodeSpec{ProviderID: "ingot://m/1", Taints: []corev1.Taint{{Key: "ingot.dev/unvalidated", Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, NodeInfo: corev1.NodeSystemInfo{BootID: "b"}},
		},
		Previous: &v1alpha1.Verdict{Result: v1alpha1.CheckPass, NodeUID: "n", BootID: "b", Revision: "r", Since: &since},
	}
}

var uses = []use{
	{"PhaseEntry.At", "a release goes on without its pods, or without its tenant", 15 * time.Minute, true, func(at time.Time, clock watched.Clock) bool {
		f := lifecycle.Facts{Clock: clock, Timeouts: lifecycle.Timeouts{Draining: 15 * time.Minute}, Machine: lifecycle.Machine{Status: inPhase(v1alpha1.MachineReleasing, at)}}
		return f.IsDrainOver()
	}},
	{"MachineStatus.Deadline", "a Machine is broken, and a Rollout drains it", time.Hour, true, func(at time.Time, clock watched.Clock) bool {
		m := &v1alpha1.Machine{Status: inPhase(v1alpha1.MachineValidating, at)}
		deadline := micro(at.Add(time.Hour))
		m.Status.Deadline = &deadline
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksWaiting}}
		return rollout.NewMachine("r", v1alpha1.RenderedRevision{}, m, clock).FailureReason != ""
	}},
	{"RolloutStatus.BakedSince", "the canary has baked, and the others are drained", 10 * time.Minute, true, func(at time.Time, clock watched.Clock) bool {
		to, from, since := v1alpha1.RenderedRevision{Revision: "to"}, v1alpha1.RenderedRevision{Revision: "from"}, micro(at)
		m := rollout.Machine{Namespace: "a", Name: "a", Labeled: true, Desired: to, Installed: to, Claimed: true, Phase: v1alpha1.MachineReady, Ready: true, ReadySince: at}
		other := rollout.Machine{Namespace: "a", Name: "b", Installed: from, Claimed: true, Phase: v1alpha1.MachineReady, Ready: true, ReadySince: at}
		d := rollout.Plan(rollout.Facts{
			Clock: clock, Policy: rollout.NewPolicy(nil), Machines: []rollout.Machine{m, other},
			Rollout: rollout.Rollout{Name: "r", From: from, To: to, Status: v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: []string{"a/a"}, InProgress: []string{"a/a"}, BakedSince: &since}},
		})
		return d.Status.Phase != v1alpha1.RolloutCanary
	}},
	{"Verdict.Since", "the gate is lifted", 30 * time.Second, true, func(at time.Time, clock watched.Clock) bool {
		return verdict.Judge(passing(at, clock)).Gate == verdict.LiftGate
	}},
	{"WantedAttempt.Since", "an attempt has failed, because its installer cannot be asked", 46 * time.Minute, true, func(at time.Time, clock watched.Clock) bool {
		f := failedAttempt(at, clock)
		w := f.Record.Wanted
		w.EndedAt, w.Outcome, w.Deadline, f.Record.Failures = nil, "", micro(at.Add(45*time.Minute)), 0
		return host.Plan(f).Record.Wanted.Outcome == v1alpha1.AttemptFailed
	}},
	{"ReleasedNode.Since", "a Node that was left in a cluster nobody can ask is forgotten", 30 * 24 * time.Hour, true, func(at time.Time, clock watched.Clock) bool {
		return lifecycle.PlanRemaining(lifecycle.Remaining{Clock: clock, Entry: v1alpha1.ReleasedNode{MachineUID: "m", Since: micro(at)}}) == lifecycle.ForgetRemaining
	}},
	{"WantedAttempt.EndedAt", "a failed attempt is made again", time.Minute, false, func(at time.Time, clock watched.Clock) bool {
		return host.Plan(failedAttempt(at, clock)).Record.Wanted.Number == 2
	}},
	{"FailingCall.Since", "a call that fails is an error of the host", time.Minute, false, func(at time.Time, clock watched.Clock) bool {
		f := failedAttempt(at, clock)
		f.Host.Status.State, f.Observed, f.Record.Wanted, f.Record.Failures = metal3.StateAvailable, nil, nil, 0
		f.Problem = &host.Problem{Reason: v1alpha1.ReasonBMCUnreachable, Message: "no answer"}
		f.Record.FailingCalls = []v1alpha1.FailingCall{{Call: v1alpha1.CallObserve, Reason: v1alpha1.ReasonBMCUnreachable, Message: "no answer", Since: micro(at), ReasonSince: micro(at)}}
		return host.Plan(f).Record.Error != nil
	}},
	{"QuotaReservation.At", "a reservation that nobody used ends", quota.ReservationTimeout, false, func(at time.Time, clock watched.Clock) bool {
		f := quota.Facts{Clock: clock, IsLive: true, Reservations: []v1alpha1.QuotaReservation{{UID: "m", At: metav1.NewTime(at)}}, Machines: []quota.Machine{{UID: "m", Since: at}}}
		return len(f.Ending()) == 1
	}},
	{"GateStatus.PlacedAt", "the gate, which others have removed often, is placed again", 20 * time.Second, false, func(at time.Time, clock watched.Clock) bool {
		in := passing(at, clock)
		in.Previous, in.Node.Spec.Taints, in.PlacedGate = nil, nil, &v1alpha1.GateStatus{NodeUID: "n", PlacedAt: micro(at), Removals: 4}
		return verdict.Judge(in).Gate == verdict.PlaceGate
	}},
	{"Verdict.ProbedAt", "a probe that failed is made again", probe.RetryInterval, false, func(at time.Time, clock watched.Clock) bool {
		probed := micro(at)
		d := probe.Decide(probe.Input{
			Clock: clock, Spec: &v1alpha1.ProbeSpec{Image: "cuda"}, BootID: "b", IsReady: true,
			Expectation: v1alpha1.NodeExpectation{Resources: []v1alpha1.ExpectedResource{{Name: "nvidia.com/gpu", Quantity: resource.MustParse("1")}}},
			Previous:    &v1alpha1.Verdict{ProbedAt: &probed, Checks: []v1alpha1.Check{{Name: probe.Prefix + "nvidia.com/gpu", Result: v1alpha1.CheckFail}}},
		})
		return d.Action == probe.Create
	}},
	{"Pod annotation " + v1alpha1.AnnotationProbeMadeAt, "a probe that nobody schedules has ended", probe.DefaultTimeout, false, func(at time.Time, clock watched.Clock) bool {
		d := probe.Decide(probe.Input{
			Clock: clock, Spec: &v1alpha1.ProbeSpec{Image: "cuda"}, BootID: "b", IsReady: true,
			Expectation: v1alpha1.NodeExpectation{Resources: []v1alpha1.ExpectedResource{{Name: "nvidia.com/gpu", Quantity: resource.MustParse("1")}}},
			Run:         &probe.Run{Target: "nvidia.com/gpu", BootID: "b", Phase: corev1.PodPending, Created: at},
		})
		return slices.ContainsFunc(d.Checks, func(c v1alpha1.Check) bool { return c.Result == v1alpha1.CheckFail })
	}},
}

// TestAClockThatIsSetCausesNothing drives each use of a stored time with a clock that is right, one that was set a day forward since, and one that was a day
// ahead when the time was stored.
func TestAClockThatIsSetCausesNothing(t *testing.T) {
	stored := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const day, moment = 24 * time.Hour, 10 * time.Second
	for _, u := range uses {
		for _, c := range []struct {
			about string
			clock watched.Clock
			at    time.Time
			want  bool
			isAny bool
		}{
			{"before its time", watched.Clock{Now: stored.Add(moment), Since: stored.Add(-day)}, stored, false, false},
			{"in its time", watched.Clock{Now: stored.Add(u.after + moment), Since: stored.Add(-day)}, stored, true, false},
			{"the clock was set a day forward a moment ago", watched.Clock{Now: stored.Add(40*day + moment), Since: stored.Add(40 * day)}, stored, false, !u.isFinal},
			{"it was stored a day ahead a moment ago", watched.Clock{Now: stored.Add(moment), Since: stored}, stored.Add(day), false, false},
			{"it was stored a day ahead, and the clock has been right long enough since", watched.Clock{Now: stored.Add(u.after + moment), Since: stored}, stored.Add(day), true, u.after > day},
		} {
			if got := u.follows(c.at, c.clock); got != c.want && !c.isAny {
				t.Errorf("%s, %s: %t: %s", u.field, c.about, got, u.what)
			}
		}
	}
}

// onlyShown are the stored times from which nothing follows but what is shown, each with what it is used for.
var onlyShown = map[string]string{
	"DeviceHolding.Since":                 "shown",
	"DeviceWait.Since":                    "shown; waits are ordered by it",
	"DiskGone.At":                         "shown",
	"EraseProof.At":                       "shown; turns are ordered by it",
	"FailingCall.ReasonSince":             "how soon another message of the same failure is shown",
	"HostAgent.HeardAt":                   "shown; the installer counts an agent's silence in its own process",
	"HostAgent.RegisteredAt":              "shown",
	"HostAttempt.ConfigDriveAwaitedAt":    "whether it is there decides, not when",
	"HostAttempt.KernelFetchedAt":         "a finding",
	"HostAttempt.OpenedAt":                "the installer's own time-outs, by the clock as it is now (sessions.Store): an attempt ends early and is made again",
	"HostAttempt.StepAt":                  "the installer's own time-outs, by the clock as it is now, and how soon it is looked at again",
	"HostAttempt.StepDeadline":            "shown",
	"HostFinding.At":                      "how soon a finding is written again",
	"HostInstalled.At":                    "how often a server is looked at while it boots; turns are ordered by it",
	"HostPower.ObservedAt":                "since when a power change is asked for: one in the future begins anew",
	"HostQueue.Since":                     "turns are ordered by it",
	"KernelAwaited.At":                    "a finding",
	"MachineGone.Since":                   "shown",
	"MachinePowerOff.ConfirmedAt":         "whether it is there decides, not when",
	"MachinePowerOff.RequestedAt":         "ordered against the phase and the power of the same clock: what is out of order is waited for",
	"MachineStatus.NodeRemainsReportedAt": "whether it is there decides, not when",
	"MachineStatus.PowerOffRequestedAt":   "whether it is there decides, not when",
	"NodeMetadataStatus.PlacedAt":         "as GateStatus.PlacedAt, for labels and taints",
	"NodeProviderStatus.BootCheckedAt":    "when it is checked again: one in the future is checked at once",
	"OSImageStatus.CheckedAt":             "when it is checked again: one in the future is checked at once",
	"RolloutEntry.At":                     "shown",
	"WantedAttempt.ConfigDriveAwaitedAt":  "whether it is there decides, not when",
	"WantedAttempt.Deadline":              "the installer's own time-outs, by the clock as it is now (host.Plan): an attempt ends early and is made again",
}

func TestEveryStoredTimeIsInTheTable(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, kind := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if strings.HasPrefix(kind.PkgPath(), reflect.TypeFor[v1alpha1.Machine]().PkgPath()) {
			collectTimes(kind, found)
		}
	}
	known := map[string]bool{}
	for _, u := range uses {
		known[u.field] = true
	}
	var unknown []string
	for field := range found {
		if !known[field] && onlyShown[field] == "" {
			unknown = append(unknown, field)
		}
	}
	slices.Sort(unknown)
	for _, field := range unknown {
		t.Errorf("%s is a stored time: say in this file what follows from it, and what a day either way does", field)
	}
	for field := range onlyShown {
		if !found[field] {
			t.Errorf("%s is no stored time", field)
		}
	}
}

// collectTimes adds TYPE.FIELD of each time in the type.
func collectTimes(of reflect.Type, found map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collectTimes(of.Elem(), found)
		return
	case reflect.Struct:
	default:
		return
	}
	if of.PkgPath() != reflect.TypeFor[v1alpha1.Machine]().PkgPath() {
		return
	}
	for i := range of.NumField() {
		f := of.Field(i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner == reflect.TypeFor[metav1.Time]() || inner == reflect.TypeFor[metav1.MicroTime]() {
			found[of.Name()+"."+f.Name] = true
			continue
		}
		collectTimes(f.Type, found)
	}
}
