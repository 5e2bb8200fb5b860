package host

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// next returns the facts of the next reconcile, after the decision was written.
func (f Facts) next(d Decision, after time.Duration) Facts {
	f.Host.Status, f.Record = d.Status, *d.Record.DeepCopy()
	f.Now = f.Now.Add(after)
	return f
}

// refusals are errors of a BMC that often end by themselves, as it words them at the n-th try.
var refusals = map[string]func(n int) error{
	v1alpha1.ReasonBMCBusy: func(n int) error {
		return hardware.Errorf(hardware.Busy, "set boot override", "https://10.0.0.7", "HTTP 503: request 4f%02da-%d failed at 2026-11-20T12:%02d:11Z", n, n, n)
	},
	v1alpha1.ReasonBMCConflict: func(n int) error {
		return hardware.Errorf(hardware.Conflict, "set boot override", "https://10.0.0.7", "HTTP 412: ETag \"%x\"", 1000+n)
	},
	v1alpha1.ReasonBMCNotFound: func(int) error {
		return hardware.Errorf(hardware.NotFound, "read system", "https://10.0.0.7", "HTTP 404")
	},
	v1alpha1.ReasonBMCUnreachable: func(int) error {
		return hardware.Errorf(hardware.Unreachable, "read system", "https://10.0.0.7", "no answer in time")
	},
	"HostRecordUnavailable": func(int) error {
		return &hardware.Error{Kind: hardware.Busy, Reason: hardware.ReasonHostRecordUnavailable, Op: "update session", Err: errors.New("the API server does not answer")}
	},
}

func TestACallThatFailsForAMinuteIsReportedOnce(t *testing.T) {
	actions := map[ActionKind]Facts{
		ActionInspect:  facts(metal3.StateInspecting, off).attempted(1, hardware.OpInspect, running, ""),
		ActionInstall:  facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, ""),
		ActionErase:    facts(metal3.StateDeprovisioning, off).installed().attempted(3, hardware.OpErase, running, ""),
		ActionCancel:   facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) { f.Host.HasImage = false }),
		ActionSetPower: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Online = false }),
	}
	types := map[ActionKind]metal3.ErrorType{
		ActionInspect: metal3.InspectionError, ActionInstall: metal3.ProvisioningError, ActionErase: metal3.ProvisioningError,
		ActionCancel: metal3.PowerManagementError, ActionSetPower: metal3.PowerManagementError,
	}
	for kind, f := range actions {
		for reason, refusal := range refusals {
			t.Run(fmt.Sprint(kind, reason), func(t *testing.T) {
				f, events, writes := f, 0, 0
				for n := range 20 {
					d := Plan(f)
					if d.Action.Kind != kind {
						t.Fatalf("after %s: action %q, %+v", f.Now.Sub(noon), d.Action.Kind, d.Status)
					}
					d = d.WithActionError(f, refusal(n))
					isLate := f.Now.Sub(noon) >= time.Minute
					if (d.Record.Error != nil) != isLate || (d.Status.ErrorType == types[kind]) != isLate || isLate && d.Record.Error.Reason != reason {
						t.Fatalf("after %s: %s, %+v", f.Now.Sub(noon), d.Status.ErrorType, d.Record.Error)
					}
					if !equality.Semantic.DeepEqual(d.Record, f.Record) {
						writes++
					}
					events += len(d.Events)
					f = f.next(d, d.RequeueAfter)
				}
				// The first failure, and the error.
				if events != 1 || writes > 3 {
					t.Errorf("%d events, %d writes", events, writes)
				}
				d := Plan(f).WithActionDone()
				if d.Record.Error != nil || len(d.Record.FailingCalls) != 0 || d.Status.ErrorType != "" || d.Status.ErrorCount != 0 {
					t.Errorf("the call succeeds, and the host reports %+v", d.Record)
				}
			})
		}
	}
}

func TestAnInstallationThatWaitsForItsDocumentsWritesNothingForAMinute(t *testing.T) {
	waits := &hardware.Error{Kind: hardware.Busy, Reason: hardware.ReasonNoConfigDrive, Op: "prepare work", Err: errors.New("the Secret is not written yet")}
	since := microTime(noon)
	f := facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) { f.Record.Wanted.ConfigDriveAwaitedAt = &since })
	for f.Now.Sub(noon) < time.Minute {
		d := Plan(f).WithActionError(f, waits)
		if !equality.Semantic.DeepEqual(d.Record, f.Record) || len(d.Events) != 0 || d.RequeueAfter > 2*f.Timeouts.PollInterval {
			t.Fatalf("after %s it writes %+v, and asks again after %s", f.Now.Sub(noon), d.Record, d.RequeueAfter)
		}
		f = f.next(d, d.RequeueAfter)
	}
	if d := Plan(f).WithActionError(f, waits); d.Record.Error == nil || d.Record.Error.Reason != string(hardware.ReasonNoConfigDrive) || !d.Record.FailingCalls[0].Since.Time.Equal(noon) {
		t.Errorf("after a minute: %+v", d.Record)
	}
}

func TestABMCThatFailsInTurnsWithTwoReasonsIsReported(t *testing.T) {
	f := facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, "")
	writes := 0
	for n := range 60 {
		kind := []hardware.Kind{hardware.Busy, hardware.Unreachable}[n%2]
		d := Plan(f).WithActionError(f, hardware.Errorf(kind, "set boot override", "bmc", "try %d", n))
		if isLate := f.Now.Sub(noon) >= time.Minute; isLate && d.Record.Error == nil {
			t.Fatalf("after %s nothing is reported", f.Now.Sub(noon))
		}
		if !equality.Semantic.DeepEqual(d.Record, f.Record) {
			writes++
		}
		f = f.next(d, 2*time.Second)
	}
	if writes > 5 {
		t.Errorf("%d writes in two minutes", writes)
	}
}

func TestAFailureIsForgottenWithTheCallThatFailed(t *testing.T) {
	f := facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").
		with(failingSince(v1alpha1.CallInstall, v1alpha1.ReasonBMCConflict, -time.Hour)).with(failingSince(v1alpha1.CallObserve, v1alpha1.ReasonBMCBusy, -time.Hour))
	calls := func(d Decision) (out []v1alpha1.HostCall) {
		for _, c := range d.Record.FailingCalls {
			out = append(out, c.Call)
		}
		return out
	}
	if got := calls(Plan(f)); !slices.Equal(got, []v1alpha1.HostCall{v1alpha1.CallInstall}) {
		t.Errorf("the BMC was read, and the installation was not tried yet: %v", got)
	}
	f.Host.HasImage = false
	if got := calls(Plan(f)); len(got) != 0 {
		t.Errorf("the installation is cancelled: %v", got)
	}
	f.Host.Detached = true
	if got := calls(Plan(f)); len(got) != 0 {
		t.Errorf("the host is detached: %v", got)
	}
}

func TestAReasonThatAPersonMustCorrectIsNotKeptBackByAnother(t *testing.T) {
	f := facts(metal3.StateProvisioned, on).claimed().installed().with(broken(v1alpha1.ReasonBMCBusy))
	f = f.next(Plan(f), time.Second).with(broken(v1alpha1.ReasonBMCUnauthorized))
	d := Plan(f)
	if d.Record.Error == nil || d.Record.Error.Reason != v1alpha1.ReasonBMCUnauthorized || len(d.Events) != 1 {
		t.Errorf("the credentials are refused: %+v", d.Record)
	}
	f = f.next(d, time.Second).with(broken(v1alpha1.ReasonBMCUnreachable))
	if d = Plan(f); d.Record.FailingCalls[0].Reason != v1alpha1.ReasonBMCUnreachable {
		t.Errorf("other credentials were not refused, and count as refused: %+v", d.Record.FailingCalls)
	}
}

func TestThePausesGrowWhileABMCDoesNotAnswer(t *testing.T) {
	pauses := func(f Facts) []time.Duration {
		var out []time.Duration
		for range 12 {
			d := Plan(f.with(broken(v1alpha1.ReasonBMCUnreachable)))
			out = append(out, d.RequeueAfter)
			f = f.next(d, d.RequeueAfter)
		}
		return out
	}
	for name, c := range map[string]struct {
		facts   Facts
		longest time.Duration
	}{
		"a host in the pool":         {facts(metal3.StateAvailable, off), 5 * time.Minute},
		"a host that a Machine runs": {facts(metal3.StateProvisioned, on).claimed().installed(), 5 * time.Minute},
		"a host that must be fenced": {facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Online = false }), time.Minute},
	} {
		got := pauses(c.facts)
		if !slices.IsSorted(got[3:]) || got[0] != 10*time.Second || got[len(got)-1] != c.longest {
			t.Errorf("%s: %v", name, got)
		}
	}
	f := facts(metal3.StateAvailable, off).with(broken(v1alpha1.ReasonCredentialsMissing)).with(failingSince(v1alpha1.CallObserve, v1alpha1.ReasonCredentialsMissing, -time.Hour))
	if d := Plan(f); d.RequeueAfter != time.Minute {
		t.Errorf("a person creates the Secret, and it is read after %s", d.RequeueAfter)
	}
}

func TestABMCThatNamesATimeIsNotTriedBefore(t *testing.T) {
	working := facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, "").with(drawn(0))
	asks := func(f Facts, after time.Duration) error {
		return &hardware.Error{Kind: hardware.Busy, Op: "set boot override", Err: errors.New("HTTP 503"), RetryAfter: after}
	}
	for _, c := range []struct{ after, want time.Duration }{
		{30 * time.Second, 30 * time.Second},
		{-time.Minute, 5 * working.Timeouts.PollInterval / 2},
		{5 * time.Minute, working.Timeouts.BMCGrace}, // it is reported after the grace period
	} {
		if d := Plan(working).WithActionError(working, asks(working, c.after)); d.RequeueAfter != c.want {
			t.Errorf("after a call that is refused for %s the next is in %s, expected %s", c.after, d.RequeueAfter, c.want)
		}
		problem := NewProblem(asks(working, c.after), "HTTP 503")
		observing := working
		observing.Problem, observing.Observed = &problem, nil
		if d := Plan(observing); d.Action.Kind == ActionNone && d.RequeueAfter != c.want {
			t.Errorf("after an observation that is refused for %s the next is in %s, expected %s", c.after, d.RequeueAfter, c.want)
		}
	}
}

// drawn has the host draw that random number.
func drawn(random float64) func(*Facts) { return func(f *Facts) { f.Random = random } }

func TestAFleetThatFailsInOneMomentDoesNotComeBackInOneMoment(t *testing.T) {
	installing := facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, "")
	failed := func(since time.Duration, err *hardware.Error) func(Facts) Decision {
		return func(f Facts) Decision {
			if since > 0 {
				f = f.with(failingSince(v1alpha1.CallInstall, ErrorReasonText(err), -since))
			}
			return Plan(f).WithActionError(f, err)
		}
	}
	of := func(kind hardware.Kind, reason hardware.Reason) *hardware.Error {
		return &hardware.Error{Kind: kind, Reason: reason, Op: "request active", Err: errors.New("HTTP 503")}
	}
	waiting := func(f Facts) Decision {
		since := microTime(noon)
		f = f.with(func(f *Facts) { f.Record.Wanted.ConfigDriveAwaitedAt = &since })
		return Plan(f).WithActionError(f, of(hardware.Busy, hardware.ReasonNoConfigDrive))
	}
	asks := of(hardware.Busy, hardware.ReasonInstallerBusy)
	asks.RetryAfter = 30 * time.Second
	poll, retry := installing.Timeouts.PollInterval, installing.Timeouts.RetryBase
	for name, c := range map[string]struct {
		decide      func(Facts) Decision
		least, most time.Duration
	}{
		"Ironic is unreachable":                  {failed(0, of(hardware.Unreachable, hardware.ReasonInstallerUnreachable)), 5 * poll / 2, 15 * poll / 2},
		"Ironic is unreachable for 20 seconds":   {failed(20*time.Second, of(hardware.Unreachable, hardware.ReasonInstallerUnreachable)), 10 * time.Second, 30 * time.Second},
		"Ironic is unreachable for an hour":      {failed(time.Hour, of(hardware.Unreachable, hardware.ReasonInstallerUnreachable)), retry / 2, 3 * retry / 2},
		"a node is locked":                       {failed(0, of(hardware.Busy, hardware.ReasonInstallerBusy)), 5 * poll / 2, 15 * poll / 2},
		"Ironic works on as many as it may":      {failed(0, of(hardware.Busy, hardware.ReasonInstallerFull)), 5 * poll / 2, 15 * poll / 2},
		"a node's documents are being written":   {waiting, poll / 2, 3 * poll / 2},
		"Ironic names a time":                    {failed(0, asks), 30 * time.Second, 30*time.Second + 5*poll},
		"the failure is to be reported":          {failed(55*time.Second, of(hardware.Busy, hardware.ReasonInstallerBusy)), 5 * time.Second, 5*time.Second + 5*poll},
		"a person must act":                      {failed(0, of(hardware.Unauthorized, hardware.ReasonInstallerUnauthorized)), retry / 2, 3 * retry / 2},
		"the power of a host cannot be observed": {func(f Facts) Decision { return Plan(f.with(broken(v1alpha1.ReasonInstallerUnreachable))) }, 5 * poll / 2, 15 * poll / 2},
	} {
		first, mean, last := c.decide(installing.with(drawn(0))).RequeueAfter, c.decide(installing.with(drawn(0.5))).RequeueAfter, c.decide(installing.with(drawn(0.999999))).RequeueAfter
		if first != c.least || last >= c.most || last < c.most-time.Second || (mean-(c.least+c.most)/2).Abs() > time.Millisecond {
			t.Errorf("%s: again after %s, %s on average, and at most %s; expected %s to %s", name, first, mean, last, c.least, c.most)
		}
	}
}

func TestEachHostIsInTheLaneOfItsBMC(t *testing.T) {
	silent := failingSince(v1alpha1.CallObserve, v1alpha1.ReasonBMCUnreachable, -time.Minute)
	fence := func(f *Facts) { f.Host.Online = false }
	unknown := func(f *Facts) { f.Record.Power = nil }
	machine := func() Facts { return facts(metal3.StateProvisioned, on).claimed().installed() }
	for name, c := range map[string]struct {
		facts Facts
		want  Lane
	}{
		"a host in the pool":                                {facts(metal3.StateAvailable, off), LaneRoutine},
		"a host that a Machine runs on":                     {machine(), LaneRoutine},
		"a host that is inspected":                          {facts(metal3.StateInspecting, off).attempted(1, hardware.OpInspect, running, ""), LaneRoutine},
		"a host that is to be fenced":                       {machine().with(fence), LaneWork},
		"a host whose power is switched":                    {machine().with(poweringOff(-time.Minute)), LaneWork},
		"a host whose spec has changed":                     {machine().with(func(f *Facts) { f.Host.Generation++ }), LaneWork},
		"a host that is to be rebooted":                     {machine().with(func(f *Facts) { f.Host.Reboot = true }), LaneWork},
		"a host that is installed":                          {facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, ""), LaneWork},
		"a host that is to be installed again":              {machine().with(func(f *Facts) { f.Spec.Attempt++ }), LaneWork},
		"a host that is erased":                             {facts(metal3.StateDeprovisioning, off).attempted(2, hardware.OpErase, running, ""), LaneWork},
		"a new host":                                        {facts(metal3.StateNone, off).with(unknown), LaneTrial},
		"a new host whose BMC did not answer":               {facts(metal3.StateRegistering, off).with(unknown).with(silent), LaneSuspect},
		"a host in the pool whose BMC does not answer":      {facts(metal3.StateAvailable, off).with(silent), LaneSuspect},
		"a host that is to be fenced by a silent BMC":       {machine().with(fence).with(silent), LaneTrial},
		"a host that is installed beside a silent BMC":      {facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, "").with(silent), LaneTrial},
		"a host whose BMC is busy answers at least":         {facts(metal3.StateAvailable, off).with(failingSince(v1alpha1.CallObserve, v1alpha1.ReasonBMCBusy, -time.Minute)), LaneRoutine},
		"a deleted host, which is erased before it is gone": {facts(metal3.StateAvailable, off).with(deleting), LaneWork},
	} {
		c.facts.Observed = nil // the lane is known before the BMC is asked
		if got := LaneOf(c.facts); got != c.want {
			t.Errorf("%s: lane %s, expected %s", name, got, c.want)
		}
	}
}

// TestAnAttemptThatBeganWhileTheClockWasADayAheadEndsInItsTime: the installer would wait for its deadline for a day.
func TestAnAttemptThatBeganWhileTheClockWasADayAheadEndsInItsTime(t *testing.T) {
	f := facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) {
		w := f.Record.Wanted
		w.Since, w.Deadline = metav1.NewMicroTime(noon.Add(24*time.Hour)), metav1.NewMicroTime(noon.Add(24*time.Hour+45*time.Minute))
	})
	d := Plan(f)
	if d.Action.Kind != ActionInstall || !d.Action.Attempt.Deadline.Equal(noon.Add(45*time.Minute)) {
		t.Errorf("%s until %s", d.Action.Kind, d.Action.Attempt.Deadline)
	}
}
