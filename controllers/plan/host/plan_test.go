package host

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var image = v1alpha1.ExactImage{URL: "https://images/a.raw", Checksum: "sha256:aa", Format: v1alpha1.FormatRaw}

// facts begins a case: a host in a state, powered as said, whose BMC answers.
func facts(state metal3.ProvisioningState, power hardware.PowerState) Facts {
	return Facts{
		Clock: watched.Clock{Now: noon}, Random: 0.5, Timeouts: DefaultTimeouts(), Grant: &breaker.Answer{IsGranted: true}, ErasePolicy: v1alpha1.EraseMetadata,
		Host: Host{Generation: 3, Status: Status{State: state, OperationalStatus: metal3.OperationalStatusOK, PoweredOn: power == hardware.PowerOn}},
		Record: v1alpha1.HostRecordStatus{Power: &v1alpha1.HostPower{
			State: string(power), ObservedGeneration: 3, ObservedAt: at(-time.Hour)}},
		Observed: &hardware.Observation{Power: power},
	}
}

func at(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon.Add(d)) }

func (f Facts) claimed() Facts {
	f.Host.Claimed, f.Host.ConsumerUID, f.Host.HasImage, f.Host.Online = true, "m1", true, true
	i := image
	f.Spec = v1alpha1.HostRecordSpec{Machine: &v1alpha1.MachineReference{Namespace: "team", Name: "a", UID: "m1"}, Tenant: "team/research",
		Revision: "r1", Attempt: 1, Image: &i, Erase: v1alpha1.EraseFull}
	return f
}

// attempted adds an attempt that ended a moment ago, or runs, as its installer says.
func (f Facts) attempted(number int64, op hardware.Operation, state hardware.AttemptState, reason hardware.Reason) Facts {
	i := image
	a := &v1alpha1.WantedAttempt{Number: number, Operation: string(op), Since: at(-10 * time.Minute), Deadline: at(30 * time.Minute)}
	seen := *f.Observed
	seen.Attempt = &hardware.AttemptStatus{Number: number, State: state, Step: hardware.StepWriting, Reason: reason, Message: "seen"}
	f.Observed = &seen
	switch op {
	case hardware.OpInstall:
		a.MachineUID, a.MachineAttempt, a.Image = "m1", 1, &i
		f.Record.LastTenant = "team/research"
	case hardware.OpErase:
		a.Erase = v1alpha1.EraseFull
	}
	f.Record.Wanted = a
	return f
}

// ended says that the consequences of the attempt's end are drawn.
func (f Facts) ended(failures int32) Facts {
	t, w, seen := at(0), f.Record.Wanted, f.Observed.Attempt
	w.EndedAt, w.Outcome, f.Record.Failures = &t, v1alpha1.AttemptOutcome(seen.State), failures
	if w.Outcome == v1alpha1.AttemptFailed {
		w.Step, w.Reason, w.Message = string(seen.Step), string(seen.Reason), seen.Message
	}
	return f
}

func (f Facts) with(change func(*Facts)) Facts {
	change(&f)
	return f
}

func (f Facts) installed() Facts {
	f.Record.LastTenant = "team/research"
	f.Record.Installed = &v1alpha1.HostInstalled{MachineUID: "m1", Attempt: 1, Checksum: image.Checksum, At: at(-time.Hour)}
	return f
}

func otherImage(f *Facts) {
	f.Spec.Image = &v1alpha1.ExactImage{URL: "https://images/b.raw", Checksum: "sha256:bb", Format: v1alpha1.FormatRaw}
}

func broken(reason string) func(*Facts) {
	return func(f *Facts) {
		f.Problem = &Problem{Reason: reason, Message: "no answer"}
		f.Observed = &hardware.Observation{Power: hardware.PowerUnknown, Attempt: f.Observed.Attempt}
	}
}

// failingSince adds a call that fails since the time.
func failingSince(call v1alpha1.HostCall, reason string, since time.Duration) func(*Facts) {
	return func(f *Facts) {
		f.Record.FailingCalls = append(slices.Clone(f.Record.FailingCalls), v1alpha1.FailingCall{Call: call, Reason: reason, Message: "no answer", Since: at(since), ReasonSince: at(since)})
	}
}

func begins(number int64, op hardware.Operation) func(*testing.T, Decision) {
	return func(t *testing.T, d Decision) {
		t.Helper()
		a := d.Record.Wanted
		if a == nil || a.Number != number || a.Operation != string(op) || !a.IsOpen() || d.Action.Kind != ActionNone {
			t.Errorf("attempt = %+v with action %q, expected the record of number %d, %s, alone", a, d.Action.Kind, number, op)
		}
	}
}

// inUse is a host that a Machine runs on since its first attempt, in a state that says otherwise.
func inUse(state metal3.ProvisioningState) Facts {
	f := facts(state, hardware.PowerOn).claimed().installed().attempted(2, hardware.OpInstall, hardware.AttemptSucceeded, "").ended(0)
	f.Record.Inventory = &v1alpha1.HostInventory{}
	return f
}

func asks(want hardware.PowerState, graceful bool) func(*testing.T, Decision) {
	return func(t *testing.T, d Decision) {
		t.Helper()
		if p := d.Action.Power; p.Desired != want || p.Graceful != graceful || p.Since.IsZero() {
			t.Errorf("asks for %+v, expected %s, graceful %t", p, want, graceful)
		}
	}
}

func later(d time.Duration) func(*Facts) { return func(f *Facts) { f.Now = f.Now.Add(d) } }

func poweringOff(since time.Duration) func(*Facts) {
	return func(f *Facts) { f.Record.Power.State, f.Record.Power.ObservedAt = "PoweringOff", at(since) }
}

func deleting(f *Facts) { f.Host.Deleting = true }

func TestAPausedHostIsLeftAlone(t *testing.T) {
	f := facts(metal3.StateProvisioned, hardware.PowerOff).claimed().with(deleting)
	f.Host.Paused, f.Host.HasImage = true, false
	d := Plan(f)
	if d.Status != f.Host.Status || d.Action.Kind != ActionNone || d.RemoveFinalizer || d.RequeueAfter != 0 || len(d.Events) != 0 {
		t.Errorf("decision = %+v", d)
	}
}

func TestAnActionErrorThatAnAdministratorMustCorrectIsReported(t *testing.T) {
	f := facts(metal3.StateProvisioning, hardware.PowerOff).claimed().attempted(2, hardware.OpInstall, hardware.AttemptRunning, "")
	d := Plan(f)
	if busy := d.WithActionError(f, hardware.Errorf(hardware.Busy, "install", "host", "later")); busy.Status.ErrorType != "" || busy.RequeueAfter <= 0 {
		t.Errorf("busy: %+v", busy)
	}
	refused := d.WithActionError(f, hardware.Errorf(hardware.Unsupported, "boot", "host", "no network boot"))
	if refused.Status.ErrorType != metal3.ProvisioningError || refused.Status.ErrorMessage != "BMCUnsupported: boot on host: Unsupported: no network boot" || len(refused.Events) != 1 ||
		*refused.Record.Error != (v1alpha1.HostError{Reason: "BMCUnsupported", Message: "boot on host: Unsupported: no network boot"}) {
		t.Errorf("unsupported: %+v, %+v", refused, refused.Record.Error)
	}
}

func TestAPowerOffThatIsIgnoredIsAnErrorUntilThePowerIsOff(t *testing.T) {
	f := facts(metal3.StateProvisioned, hardware.PowerOn).claimed().installed().with(poweringOff(-time.Hour))
	f.Host.Online = false
	ignored := &hardware.Error{Kind: hardware.Ignored, Reason: hardware.ReasonPowerOffIgnored, Op: "set power Off", Err: errors.New("it still reports On")}
	d := Plan(f).WithActionError(f, ignored)
	if d.Status.ErrorType != metal3.PowerManagementError || d.Status.ErrorMessage != "PowerOffIgnored: it still reports On" || d.Record.Error.Reason != "PowerOffIgnored" || d.RequeueAfter != f.Timeouts.RetryBase {
		t.Errorf("first: %+v, %+v, again in %s", d.Status, d.Record.Error, d.RequeueAfter)
	}
	f.Host.Status, f.Record = d.Status, d.Record
	again := Plan(f).WithActionError(f, ignored)
	if again.Status.ErrorCount != 1 || len(again.Events) != 0 {
		t.Errorf("the same error is told again: %d, %+v", again.Status.ErrorCount, again.Events)
	}
	f.Observed.Power = hardware.PowerOff
	if d = Plan(f); d.Record.Error != nil || d.Status.ErrorType != "" {
		t.Errorf("off: %+v, %+v", d.Status, d.Record.Error)
	}
	f = facts(metal3.StatePoweringOffBeforeDelete, hardware.PowerOn).attempted(1, hardware.OpInspect, hardware.AttemptSucceeded, "").ended(0).with(deleting)
	f.Record.Error = &v1alpha1.HostError{Reason: "PowerOffIgnored"}
	if d = Plan(f); d.Status.State != metal3.StateDeleting {
		t.Errorf("a clean host that cannot be powered off is kept for ever in state %s", d.Status.State)
	}
}

func TestAFailedAttemptWithAnIgnoredPowerOffIsReportedAsOneError(t *testing.T) {
	for _, reason := range []hardware.Reason{hardware.ReasonDigestMismatch, hardware.ReasonPowerOffIgnored} {
		f := facts(metal3.StateProvisioning, hardware.PowerOn).claimed().attempted(2, hardware.OpInstall, hardware.AttemptFailed, reason).ended(3)
		ignored := &hardware.Error{Kind: hardware.Ignored, Reason: hardware.ReasonPowerOffIgnored, Op: "set power Off", Err: errors.New("it still reports On")}
		warnings := 0
		for round := range 3 {
			d := Plan(f).WithActionError(f, ignored)
			if e := d.Record.Error; e.Reason != string(reason) || !strings.HasPrefix(e.Message, "attempt 2 failed at Writing: seen; it is not tried again by itself") ||
				!strings.HasSuffix(e.Message, "; besides, PowerOffIgnored: it still reports On") || d.Status.ErrorType != metal3.ProvisioningError || d.Status.ErrorCount != 1 {
				t.Errorf("round %d: %+v, %+v", round, e, d.Status)
			}
			warnings += len(d.Events)
			f.Host.Status, f.Record = d.Status, d.Record
		}
		if warnings != 1 {
			t.Errorf("%s is told %d times", reason, warnings)
		}
		if e := Plan(f).WithActionError(f, hardware.Errorf(hardware.Unauthorized, "power", "host", "401")).Record.Error; e.Reason != v1alpha1.ReasonBMCUnauthorized {
			t.Errorf("the login is not known as refused, and is tried again with every observation: %+v", e)
		}
	}
}

func TestAnErrorMessageDoesNotGrowWhileTheBMCDoesNotAnswer(t *testing.T) {
	f := facts(metal3.StateProvisioning, hardware.PowerOn).claimed().attempted(2, hardware.OpInstall, hardware.AttemptRunning, "")
	unsupported := hardware.Errorf(hardware.Unsupported, "boot", "host", "no network boot")
	d := Plan(f).WithActionError(f, unsupported)
	want := *d.Record.Error
	for round := range 3 {
		f.Host.Status, f.Record = d.Status, d.Record
		f = f.with(broken("BMCUnreachable"))
		if d = Plan(f).WithActionError(f, unsupported); *d.Record.Error != want || len(d.Events) != 0 {
			t.Errorf("round %d: %+v, %+v", round, d.Record.Error, d.Events)
		}
	}
	f = facts(metal3.StateDeprovisioning, hardware.PowerOff).installed().attempted(2, hardware.OpErase, hardware.AttemptFailed, hardware.ReasonDiskError).ended(3).with(deleting)
	d = Plan(f)
	want = *d.Record.Error
	if !strings.HasSuffix(want.Message, detachHint) {
		t.Errorf("a deleted host is kept without a word: %s", want.Message)
	}
	for round := range 3 {
		f.Host.Status, f.Record = d.Status, d.Record
		f = f.with(broken("BMCUnreachable"))
		if d = Plan(f); *d.Record.Error != want {
			t.Errorf("round %d: %d bytes, %d before: %s", round, len(d.Record.Error.Message), len(want.Message), d.Record.Error.Message)
		}
	}
}

func TestAPowerChangeKeepsItsTimeWhenTheRecordIsReadAgain(t *testing.T) {
	f := facts(metal3.StateProvisioned, hardware.PowerOn).claimed().installed().with(later(1234 * time.Nanosecond))
	f.Host.Online = false
	first := Plan(f)
	stored, err := json.Marshal(first.Record)
	if err != nil {
		t.Fatal(err)
	}
	f.Record = v1alpha1.HostRecordStatus{}
	if err := json.Unmarshal(stored, &f.Record); err != nil {
		t.Fatal(err)
	}
	if second := Plan(f.with(later(time.Second))); !second.Action.Power.Since.Equal(first.Action.Power.Since) {
		t.Errorf("since %s, then %s: the installer takes it for another change, and asks again", first.Action.Power.Since, second.Action.Power.Since)
	}
}

func TestTextsAreTruncatedBetweenCharacters(t *testing.T) {
	long := "a" + strings.Repeat("é", 3000)
	f := facts(metal3.StateProvisioning, hardware.PowerOff).claimed().attempted(4, hardware.OpInstall, hardware.AttemptFailed, hardware.ReasonDiskError).ended(1)
	f.Host.Retry = long
	if seen := Plan(f).Record.RetrySeen; !strings.HasPrefix(long, seen) || len(seen) < v1alpha1.MaxRetrySeen-1 || len(seen) > v1alpha1.MaxRetrySeen {
		t.Errorf("retrySeen %q: what the API server keeps of it would differ from the annotation, and be another request for ever", seen)
	}
	f = facts(metal3.StateProvisioning, hardware.PowerOn).claimed().attempted(4, hardware.OpInstall, hardware.AttemptFailed, hardware.ReasonDiskError)
	f.Observed.Attempt.Message = long
	if message := Plan(f).Record.Wanted.Message; !utf8.ValidString(message) || len(message) > 4096 {
		t.Errorf("message of %d bytes is cut within a character", len(message))
	}
}

func looksWithin(least, most time.Duration) func(*testing.T, Decision) {
	return func(t *testing.T, d Decision) {
		t.Helper()
		if d.RequeueAfter < least || d.RequeueAfter > most {
			t.Errorf("looks again after %s, want %s to %s", d.RequeueAfter, least, most)
		}
	}
}

func TestAServerThatLacksHardwareWaitsUntilSomethingElseIsRequired(t *testing.T) {
	required := &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
	f := facts(metal3.StateProvisioning, off).claimed()
	f.Spec.Hardware = required
	begun := Plan(f).Record.Wanted
	if begun == nil || begun.Hardware == nil || begun.Hardware.GPULink != required.GPULink || begun.Hardware == required {
		t.Fatalf("the attempt wants %+v", begun)
	}
	running := f.attempted(2, hardware.OpInstall, hardware.AttemptRunning, "")
	running.Record.Wanted.Hardware = required
	if d := Plan(running); d.Action.Kind != ActionInstall || !d.Action.Requirements.FullGPULinkWidth {
		t.Errorf("%s of %+v", d.Action.Kind, d.Action.Requirements)
	}
	failed := f.attempted(2, hardware.OpInstall, hardware.AttemptFailed, hardware.ReasonHardwareInsufficient).ended(1)
	failed.Record.Wanted.Hardware, failed.Now = required, failed.Now.Add(24*time.Hour)
	d := Plan(failed)
	if d.Record.Wanted.Number != 2 || d.Record.Error == nil || d.Record.Error.Reason != string(hardware.ReasonHardwareInsufficient) || !strings.Contains(d.Record.Error.Message, "not tried again by itself") {
		t.Fatalf("%+v, error %+v", d.Record.Wanted, d.Record.Error)
	}
	failed.Spec.Hardware = nil
	if d := Plan(failed); d.Record.Wanted.Number != 3 || d.Record.Wanted.Hardware != nil {
		t.Errorf("%+v, expected another attempt without the requirement", d.Record.Wanted)
	}
}

func TestTheGPUsThatAMachineNeedsReachTheInstaller(t *testing.T) {
	f := facts(metal3.StateProvisioning, off).claimed()
	f.Spec.GPUs = &v1alpha1.ExpectedGPUs{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8}
	begun := Plan(f)
	if begun.Record.Wanted == nil || begun.Record.Wanted.GPUs == nil || *begun.Record.Wanted.GPUs != *f.Spec.GPUs {
		t.Fatalf("the attempt wants %+v", begun.Record.Wanted)
	}
	running := facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, hardware.AttemptRunning, "")
	running.Record.Wanted.GPUs = f.Spec.GPUs
	want := hardware.RequiredGPUs{Model: "H100-SXM5-80GB", VendorID: "10de", DeviceIDs: "2330", Count: 8}
	if d := Plan(running); d.Action.Kind != ActionInstall || d.Action.GPUs != want {
		t.Errorf("%s of %+v, expected %+v", d.Action.Kind, d.Action.GPUs, want)
	}
}
