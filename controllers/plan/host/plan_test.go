package host

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var image = v1alpha1.ExactImage{URL: "https://images/a.raw", Checksum: "sha256:aa", Format: v1alpha1.FormatRaw}

// facts begins a case: a host in a state, powered as said, whose BMC answers.
func facts(state State, power hardware.PowerState) Facts {
	return Facts{
		Now: noon, Timeouts: DefaultTimeouts(), ErasePolicy: v1alpha1.EraseMetadata,
		Host: Host{Generation: 3, Status: Status{State: state, OperationalStatus: OperationalOK, PoweredOn: power == hardware.PowerOn}},
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

func TestDecisions(t *testing.T) {
	on, off := hardware.PowerOn, hardware.PowerOff
	running, succeeded, failed := hardware.AttemptRunning, hardware.AttemptSucceeded, hardware.AttemptFailed
	for _, c := range []struct {
		name  string
		facts Facts
		// want, where not the zero value: the state, the action, the error type, the beginning of its message.
		state   State
		action  ActionKind
		error   ErrorType
		message string
		check   func(t *testing.T, d Decision)
	}{
		{name: "a new host whose BMC answers is inspected", facts: facts(StateNone, off), state: StateInspecting},
		{name: "a new host whose inspection is disabled is available at once",
			facts: facts(StateRegistering, off).with(func(f *Facts) { f.Host.InspectionDisabled = true }), state: StateAvailable},
		{name: "refused credentials keep a host registering and say so",
			facts: facts(StateNone, off).with(broken("BMCUnauthorized")), state: StateRegistering, error: RegistrationError, message: "BMCUnauthorized: no answer"},
		{name: "an inspection begins as a record alone", facts: facts(StateInspecting, off), state: StateInspecting, check: begins(1, hardware.OpInspect)},
		{name: "a recorded inspection is asked for", facts: facts(StateInspecting, off).attempted(1, hardware.OpInspect, running, ""), state: StateInspecting, action: ActionInspect},
		{name: "an inspected host that never had an installation is available without an erase",
			facts: facts(StateInspecting, off).attempted(1, hardware.OpInspect, succeeded, ""), state: StateAvailable},
		{name: "a failed inspection is tried again after a pause",
			facts: facts(StateInspecting, off).attempted(1, hardware.OpInspect, failed, hardware.ReasonDeadlineExceeded), state: StateInspecting, error: InspectionError, message: "DeadlineExceeded"},
		{name: "an available host that a person powered on stays as it is", facts: facts(StateAvailable, on), state: StateAvailable,
			check: func(t *testing.T, d Decision) {
				if !d.Status.PoweredOn {
					t.Error("poweredOn is not shown")
				}
			}},
		{name: "an available host with an unproven past is erased first",
			facts: facts(StateAvailable, off).with(func(f *Facts) { f.Record.LastTenant = "team/research" }), state: StateDeprovisioning},
		{name: "an available host whose record is new has an unknown past",
			facts: facts(StateAvailable, off).with(func(f *Facts) { f.Record.Power = nil }), state: StateDeprovisioning,
			check: func(t *testing.T, d Decision) {
				if d.Record.LastTenant != UnknownTenant {
					t.Errorf("lastTenant = %q", d.Record.LastTenant)
				}
			}},
		{name: "a claimed host with an image is provisioned", facts: facts(StateAvailable, off).claimed(), state: StateProvisioning},
		{name: "an image that no Machine asked for is not installed",
			facts: facts(StateAvailable, off).with(func(f *Facts) { f.Host.HasImage, f.Host.Online = true, true }), state: StateAvailable, error: ProvisioningError, message: "NotClaimed"},
		{name: "a claim by another Machine than the record's waits",
			facts: facts(StateProvisioning, off).claimed().with(func(f *Facts) { f.Host.ConsumerUID = "m2" }), state: StateProvisioning,
			check: func(t *testing.T, d Decision) {
				if d.Record.Wanted != nil {
					t.Errorf("attempt = %+v", d.Record.Wanted)
				}
			}},
		{name: "a running installation gives way to another attempt of the Machine",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) { f.Spec.Attempt = 2 }),
			state: StateProvisioning, action: ActionCancel},
		{name: "the tenant is recorded and the proof of the erase withdrawn before the first byte",
			facts: facts(StateProvisioning, off).claimed().with(func(f *Facts) { f.Record.Erased = &v1alpha1.EraseEvidence{Mode: v1alpha1.EraseFull} }),
			state: StateProvisioning, check: func(t *testing.T, d Decision) {
				begins(1, hardware.OpInstall)(t, d)
				if d.Record.LastTenant != "team/research" || d.Record.Erased != nil || d.Record.Wanted.MachineUID != "m1" {
					t.Errorf("record = %+v", d.Record)
				}
			}},
		{name: "a recorded installation is asked for", facts: facts(StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, ""), state: StateProvisioning, action: ActionInstall},
		{name: "root device hints that cannot be followed stop an installation before it begins",
			facts: facts(StateProvisioning, off).claimed().with(func(f *Facts) { f.Host.UnsupportedHints = []string{"hctl"} }),
			state: StateProvisioning, error: ProvisioningError, message: "RootDeviceHintsUnsupported: spec.rootDeviceHints has hctl"},
		{name: "a successful installation provisions the host and says what is on it",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, succeeded, ""), state: StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if i := d.Record.Installed; i == nil || i.MachineUID != "m1" || i.Attempt != 1 || i.Revision != "r1" || i.Checksum != "sha256:aa" {
					t.Errorf("installed = %+v", i)
				}
			}},
		{name: "a failed installation shows its reason and the time of the next attempt",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest), state: StateProvisioning,
			action: ActionSetPower, check: asks(off, false),
			error: ProvisioningError, message: "NoBootRequest: attempt 2 failed at Writing: seen; failure 1 of 3, the next attempt is at 2026-11-20T12:01:00Z"},
		{name: "after the pause the next attempt has the next number",
			facts: facts(StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(1).with(later(time.Minute)),
			state: StateProvisioning, check: begins(3, hardware.OpInstall)},
		{name: "no attempt follows a failed one before the power is off: an older system on the disk may have come up",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(1).with(later(time.Minute)),
			state: StateProvisioning, action: ActionSetPower, check: asks(off, false)},
		{name: "the pause doubles with each failure",
			facts: facts(StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(2).with(later(time.Minute)),
			state: StateProvisioning, error: ProvisioningError, message: "NoBootRequest"},
		{name: "three failures in a row wait for a person",
			facts: facts(StateProvisioning, off).claimed().attempted(4, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(3).with(later(time.Hour)),
			state: StateProvisioning, error: ProvisioningError, message: "NoBootRequest: attempt 4 failed at Writing: seen; it is not tried again by itself"},
		{name: "a wrong digest is not tried again by itself",
			facts: facts(StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonDigestMismatch).ended(1).with(later(time.Hour)),
			state: StateProvisioning, error: ProvisioningError, message: "DigestMismatch"},
		{name: "a new value of the retry annotation asks for another attempt",
			facts: facts(StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonDigestMismatch).ended(1).with(func(f *Facts) { f.Host.Retry = "mended" }),
			state: StateProvisioning, check: begins(3, hardware.OpInstall)},
		{name: "an old value of the retry annotation asks for nothing",
			facts: facts(StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonDigestMismatch).ended(1).with(func(f *Facts) { f.Host.Retry, f.Record.RetrySeen = "x", "x" }),
			state: StateProvisioning, error: ProvisioningError},
		{name: "another attempt of the Machine starts over after failures",
			facts: facts(StateProvisioning, on).claimed().attempted(4, hardware.OpInstall, failed, hardware.ReasonDigestMismatch).ended(3).with(func(f *Facts) { f.Spec.Attempt = 2 }),
			state: StateProvisioning, check: begins(5, hardware.OpInstall)},
		{name: "a host taken offline while it is installed has its attempt cancelled",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) { f.Host.Online = false }),
			state: StateProvisioning, action: ActionCancel},
		{name: "a host released while it is installed has its attempt cancelled",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) { f.Host.HasImage = false }),
			state: StateProvisioning, action: ActionCancel},
		{name: "an attempt whose installer never ends it fails at its deadline",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(later(33 * time.Minute)),
			state: StateProvisioning, action: ActionSetPower, error: ProvisioningError, message: "DeadlineExceeded"},
		{name: "a provisioned host takes its Machine's next attempt in place",
			facts: facts(StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Spec.Attempt = 2 }), state: StateProvisioning},
		{name: "a provisioned host takes another image in place",
			facts: facts(StateProvisioned, off).claimed().installed().with(otherImage), state: StateProvisioning},
		{name: "a provisioned host that is asked to be off takes nothing yet",
			facts: facts(StateProvisioned, off).claimed().installed().with(otherImage).with(func(f *Facts) { f.Spec.Attempt, f.Host.Online = 2, false }), state: StateProvisioned},
		{name: "the next attempt in place is an installation, not an erase",
			facts: facts(StateProvisioning, off).claimed().installed().attempted(2, hardware.OpInstall, succeeded, "").ended(0).with(otherImage).with(func(f *Facts) { f.Spec.Attempt = 2 }),
			state: StateProvisioning, check: func(t *testing.T, d Decision) {
				begins(3, hardware.OpInstall)(t, d)
				if d.Record.Installed != nil || d.Record.LastTenant != "team/research" || d.Record.Wanted.Image.Checksum != "sha256:bb" {
					t.Errorf("record = %+v, attempt %+v", d.Record, d.Record.Wanted)
				}
			}},
		{name: "a running installation gives way to another image of the same attempt",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(otherImage), state: StateProvisioning, action: ActionCancel},
		{name: "a cancelled installation leaves its host off",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonCancelled).ended(0).with(func(f *Facts) { f.Host.Online = false }),
			state: StateProvisioning, action: ActionSetPower, check: asks(off, false)},
		{name: "a claimed host that was powered on by a person, and is asked to be off, is powered off",
			facts: facts(StateAvailable, on).claimed().with(func(f *Facts) { f.Host.Online = false }), state: StateAvailable, action: ActionSetPower, check: asks(off, false)},
		{name: "a provisioned host that lost its power is powered on",
			facts: facts(StateProvisioned, off).claimed().installed(), state: StateProvisioned, action: ActionSetPower, check: asks(on, false)},
		{name: "a host that boots what was installed is looked at soon, so that a lost power is seen",
			facts: facts(StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Record.Installed.At = at(-time.Minute) }), state: StateProvisioned,
			check: looksWithin(27*time.Second, 30*time.Second)},
		{name: "a host whose node is known boots nothing more",
			facts: facts(StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Record.Installed.At, f.Joined = at(-time.Minute), true }), state: StateProvisioned,
			check: looksWithin(270*time.Second, 5*time.Minute)},
		{name: "a host that has come up long ago is looked at seldom",
			facts: facts(StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Record.Installed.At = at(-time.Hour) }), state: StateProvisioned,
			check: looksWithin(270*time.Second, 5*time.Minute)},
		{name: "a provisioned host whose BMC is silent for a moment shows nothing",
			facts: facts(StateProvisioned, on).claimed().installed().with(broken("BMCUnreachable")), state: StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if !d.Status.PoweredOn || d.Record.Power.State != "Unknown" {
					t.Errorf("poweredOn %v, power %+v", d.Status.PoweredOn, d.Record.Power)
				}
			}},
		{name: "a provisioned host whose BMC stays silent shows an error and stays provisioned",
			facts: facts(StateProvisioned, on).claimed().installed().with(broken("BMCUnreachable")).with(func(f *Facts) { f.Record.Power.State = "Unknown" }),
			state: StateProvisioned, error: PowerManagementError, message: "BMCUnreachable"},
		{name: "an installation goes on while its BMC is silent",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(broken("BMCUnreachable")), state: StateProvisioning, action: ActionInstall},
		{name: "an installation does not go on without credentials",
			facts: facts(StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(broken("CredentialsMissing")).with(func(f *Facts) { f.Observed = nil }),
			state: StateProvisioning},
		{name: "a provisioned host taken offline is shut down first",
			facts: facts(StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Online = false }),
			state: StateProvisioned, action: ActionSetPower, check: asks(off, true)},
		{name: "a change of power under way goes on from when it began",
			facts: facts(StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Online = false }).with(poweringOff(-time.Minute)),
			state: StateProvisioned, action: ActionSetPower, check: func(t *testing.T, d Decision) {
				asks(off, true)(t, d)
				if !d.Action.Power.Since.Equal(noon.Add(-time.Minute)) || !d.Record.Power.ObservedAt.Time.Equal(d.Action.Power.Since) {
					t.Errorf("since %s, recorded %s", d.Action.Power.Since, d.Record.Power.ObservedAt)
				}
			}},
		{name: "a change of power for an earlier generation is another one",
			facts: facts(StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Online, f.Host.Generation = false, 4 }).with(poweringOff(-time.Minute)),
			state: StateProvisioned, action: ActionSetPower, check: func(t *testing.T, d Decision) {
				if !d.Action.Power.Since.Equal(noon) {
					t.Errorf("since %s", d.Action.Power.Since)
				}
			}},
		{name: "a confirmed power-off is recorded for this generation",
			facts: facts(StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Host.Online, f.Host.Generation = false, 4 }), state: StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if p := d.Record.Power; p.State != "Off" || p.ObservedGeneration != 4 || !p.ObservedAt.Time.Equal(noon) {
					t.Errorf("power = %+v", p)
				}
			}},
		{name: "a hard reboot cuts the power", facts: facts(StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Reboot, f.Host.RebootHard, f.Host.RebootOnce = true, true, true }),
			state: StateProvisioned, action: ActionSetPower, check: asks(off, false)},
		{name: "the reboot annotation goes when the host is off", facts: facts(StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Host.Reboot, f.Host.RebootOnce = true, true }),
			state: StateProvisioned, check: func(t *testing.T, d Decision) {
				if len(d.RemoveAnnotations) != 1 || d.RemoveAnnotations[0] != AnnotationReboot {
					t.Errorf("drops %v", d.RemoveAnnotations)
				}
			}},
		{name: "a reboot annotation with a suffix keeps the host off", facts: facts(StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Host.Reboot = true }), state: StateProvisioned},
		{name: "another attempt asked of a provisioned host re-installs it",
			facts: facts(StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Spec.Attempt = 2 }), state: StateProvisioning},
		{name: "a provisioned host without an image is deprovisioned",
			facts: facts(StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Host.HasImage = false }), state: StateDeprovisioning},
		{name: "a host whose status was lost stays with the Machine that runs on it", facts: inUse(StateNone), state: StateProvisioned},
		{name: "a host whose status says inspecting stays with the Machine that runs on it", facts: inUse(StateInspecting), state: StateProvisioned},
		{name: "a host whose status says available stays with the Machine that runs on it", facts: inUse(StateAvailable), state: StateProvisioned},
		{name: "a host whose status says preparing stays with the Machine that runs on it", facts: inUse(StatePreparing), state: StateProvisioned},
		{name: "a host whose state is another system's stays with the Machine that runs on it", facts: inUse("matching"), state: StateProvisioned},
		{name: "a host whose status was lost and that another Machine left is erased",
			facts: inUse(StateNone).with(func(f *Facts) { f.Record.Installed.MachineUID = "m0" }), state: StateDeprovisioning, action: ActionSetPower},
		{name: "a host whose status was lost while it was erased is erased",
			facts: inUse(StateNone).attempted(3, hardware.OpErase, failed, hardware.ReasonDiskError).ended(0), state: StateDeprovisioning, action: ActionSetPower},
		{name: "an image that is put back after a release without an erase is installed",
			facts: facts(StateAvailable, off).claimed().attempted(2, hardware.OpInstall, succeeded, "").ended(0).with(func(f *Facts) {
				f.Record.Erased = &v1alpha1.EraseEvidence{Mode: v1alpha1.EraseNone, Attempt: 2}
			}), state: StateProvisioning, check: begins(3, hardware.OpInstall)},
		{name: "an attempt has no number that an installer keeps something under",
			facts: facts(StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(1).with(later(time.Minute)).
				with(func(f *Facts) { f.Record.Attempt = &v1alpha1.HostAttempt{Number: 7, State: "Succeeded"} }),
			state: StateProvisioning, check: begins(8, hardware.OpInstall)},
		{name: "nothing is done with a host whose record an earlier version of Ingot wrote",
			facts: facts(StateProvisioning, on).claimed().with(func(f *Facts) {
				f.Record.Attempt = &v1alpha1.HostAttempt{Number: 1, State: "Succeeded"}
				f.Observed.Attempt = &hardware.AttemptStatus{Number: 1, State: succeeded}
			}),
			state: StateProvisioning, error: RegistrationError, message: "OlderShape: an earlier version of Ingot wrote the HostRecord", check: func(t *testing.T, d Decision) {
				if d.Record.Wanted != nil || d.Record.Installed != nil || d.Record.Error.Reason != v1alpha1.ReasonOlderShape || len(d.Events) != 1 {
					t.Errorf("record = %+v, events %+v", d.Record, d.Events)
				}
			}},
		{name: "a provisioned host whose record was lost stays, and its numbers begin anew above all earlier ones",
			facts: facts(StateProvisioned, on).claimed().with(func(f *Facts) { f.Record = v1alpha1.HostRecordStatus{} }), state: StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if d.Record.LastTenant != "team/research" || d.Record.Installed == nil {
					t.Errorf("record = %+v", d.Record)
				}
			}},
		{name: "no disk is erased before the power-off is confirmed", facts: facts(StateDeprovisioning, on).claimed().installed(), state: StateDeprovisioning,
			action: ActionSetPower, check: asks(off, true)},
		{name: "an erase begins as the Machine asked for it", facts: facts(StateDeprovisioning, off).claimed().installed(), state: StateDeprovisioning,
			check: func(t *testing.T, d Decision) {
				begins(noon.Unix()+1, hardware.OpErase)(t, d)
				if a := d.Record.Wanted; a.Erase != v1alpha1.EraseFull || a.Deadline.Sub(noon) != 24*time.Hour {
					t.Errorf("attempt = %+v", a)
				}
			}},
		{name: "the provider's policy holds when the Machine asks for nothing",
			facts: facts(StateDeprovisioning, off).installed(), state: StateDeprovisioning, check: func(t *testing.T, d Decision) {
				if d.Record.Wanted == nil || d.Record.Wanted.Erase != v1alpha1.EraseMetadata {
					t.Errorf("attempt = %+v", d.Record.Wanted)
				}
			}},
		{name: "policy None releases a host with a proof that says None",
			facts: facts(StateDeprovisioning, off).claimed().installed().with(func(f *Facts) { f.Spec.Erase = v1alpha1.EraseNone }), state: StateAvailable,
			check: func(t *testing.T, d Decision) {
				if d.Record.Erased == nil || d.Record.Erased.Mode != v1alpha1.EraseNone || d.Record.Erased.Tenant != "team/research" {
					t.Errorf("erased = %+v", d.Record.Erased)
				}
			}},
		{name: "policy None does not hold for an unknown past",
			facts: facts(StateDeprovisioning, off).with(func(f *Facts) { f.Record.LastTenant, f.ErasePolicy = UnknownTenant, v1alpha1.EraseNone }),
			state: StateDeprovisioning, check: begins(noon.Unix()+1, hardware.OpErase)},
		{name: "an erase counts only with the power off",
			facts: facts(StateDeprovisioning, on).claimed().installed().attempted(3, hardware.OpErase, succeeded, ""), state: StateDeprovisioning, action: ActionSetPower},
		{name: "a proven erase makes the host available and keeps the tenant",
			facts: facts(StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, succeeded, ""), state: StateAvailable,
			check: func(t *testing.T, d Decision) {
				e := d.Record.Erased
				if e == nil || e.Attempt != 3 || e.Mode != v1alpha1.EraseFull || e.Tenant != "team/research" || d.Record.Installed != nil || d.Record.LastTenant != "team/research" {
					t.Errorf("erased = %+v, record = %+v", e, d.Record)
				}
			}},
		{name: "an old erase without its proof does not count",
			facts: facts(StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, succeeded, "").ended(0), state: StateDeprovisioning,
			check: begins(4, hardware.OpErase)},
		{name: "a failed erase keeps the host in deprovisioning",
			facts: facts(StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, failed, hardware.ReasonDiskError), state: StateDeprovisioning, error: ProvisioningError, message: "DiskError"},
		{name: "an erase that failed three times waits for a person",
			facts: facts(StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, failed, hardware.ReasonDiskError).ended(3).with(later(24 * time.Hour)),
			state: StateDeprovisioning, error: ProvisioningError, message: "DiskError: attempt 3 failed at Writing: seen; it is not tried again by itself"},
		{name: "a begun erase is not replaced by a weaker one",
			facts: facts(StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, failed, hardware.ReasonDiskError).ended(1).
				with(func(f *Facts) { f.Spec.Erase = v1alpha1.EraseNone }).with(later(time.Hour)),
			state: StateDeprovisioning, check: func(t *testing.T, d Decision) {
				begins(4, hardware.OpErase)(t, d)
				if d.Record.Wanted.Erase != v1alpha1.EraseFull {
					t.Errorf("mode = %s", d.Record.Wanted.Erase)
				}
			}},
		{name: "an erase by annotation prepares an unclaimed host", facts: facts(StateAvailable, off).with(func(f *Facts) { f.Host.Erase = "Full" }),
			state: StatePreparing, check: begins(1, hardware.OpErase)},
		{name: "an unknown erase mode is refused", facts: facts(StateAvailable, off).with(func(f *Facts) { f.Host.Erase = "Everything" }),
			state: StateAvailable, error: PreparationError, message: `EraseModeInvalid: annotation ingot.dev/erase is "Everything"`},
		{name: "the annotation goes when its erase is proven", facts: facts(StatePreparing, off).attempted(1, hardware.OpErase, succeeded, "").with(func(f *Facts) { f.Host.Erase = "Full" }), state: StateAvailable,
			check: func(t *testing.T, d Decision) {
				if len(d.RemoveAnnotations) != 1 || d.Record.Erased == nil {
					t.Errorf("drops %v, erased %+v", d.RemoveAnnotations, d.Record.Erased)
				}
			}},
		{name: "the annotation stays when a weaker erase is proven, and the host is looked at at once",
			facts: facts(StatePreparing, off).attempted(1, hardware.OpErase, succeeded, "").with(func(f *Facts) { f.Host.Erase, f.Record.Wanted.Erase = "Full", v1alpha1.EraseMetadata }),
			state: StateAvailable, check: func(t *testing.T, d Decision) {
				if len(d.RemoveAnnotations) != 0 || d.Record.Erased == nil || d.RequeueAfter != atOnce {
					t.Errorf("drops %v, erased %+v, again in %s", d.RemoveAnnotations, d.Record.Erased, d.RequeueAfter)
				}
			}},
		{name: "an annotation with an unknown mode is not served by any erase",
			facts: facts(StatePreparing, off).attempted(1, hardware.OpErase, succeeded, "").with(func(f *Facts) { f.Host.Erase = "Everything" }),
			state: StateAvailable, error: PreparationError, message: "EraseModeInvalid", check: func(t *testing.T, d Decision) {
				if len(d.RemoveAnnotations) != 0 {
					t.Errorf("drops %v", d.RemoveAnnotations)
				}
			}},
		{name: "a proven erase waits for its power-off beyond the deadline, and is not done again",
			facts: facts(StateDeprovisioning, on).claimed().installed().attempted(3, hardware.OpErase, succeeded, "").with(later(24 * time.Hour)),
			state: StateDeprovisioning, action: ActionSetPower, check: func(t *testing.T, d Decision) {
				if w := d.Record.Wanted; w.Number != 3 || !w.IsOpen() {
					t.Errorf("attempt = %+v", w)
				}
			}},
		{name: "an erase by annotation without its proof is done again",
			facts: facts(StatePreparing, off).attempted(1, hardware.OpErase, succeeded, "").ended(0), state: StatePreparing, check: begins(2, hardware.OpErase)},
		{name: "a detached host shows its last state and is not touched",
			facts: facts(StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Detached, f.Host.HasImage, f.Observed = true, false, nil }),
			state: StateProvisioned, check: func(t *testing.T, d Decision) {
				if d.Status.OperationalStatus != OperationalDetached || d.Record.Power.State != "On" {
					t.Errorf("%+v %+v", d.Status, d.Record.Power)
				}
			}},
		{name: "a deleted host that a Machine has goes on being served", facts: facts(StateProvisioned, on).claimed().installed().with(deleting), state: StateProvisioned},
		{name: "a deleted host that is detached is given up as it is, though a Machine has it and nobody reaches it",
			facts: facts(StateProvisioned, on).claimed().installed().with(deleting).with(func(f *Facts) { f.Host.Detached, f.Observed = true, nil }), state: StateDeleting},
		{name: "a deleted host with a tenant's data is erased first", facts: facts(StateProvisioned, off).installed().with(deleting), state: StateDeprovisioning, check: begins(noon.Unix()+1, hardware.OpErase)},
		{name: "a deleted host's running erase is brought to its end",
			facts: facts(StatePreparing, on).attempted(1, hardware.OpErase, running, "").with(deleting), state: StateDeprovisioning, action: ActionErase},
		{name: "a deleted clean host is powered off", facts: facts(StateAvailable, on).attempted(1, hardware.OpInspect, succeeded, "").ended(0).with(deleting),
			state: StatePoweringOff, action: ActionSetPower, check: asks(off, false)},
		{name: "a deleted clean host that is off is deleted", facts: facts(StateAvailable, off).attempted(1, hardware.OpInspect, succeeded, "").ended(0).with(deleting), state: StateDeleting},
		{name: "a host that is deleted no more waits for its BMC, and not for its removal",
			facts: facts(StateDeleting, off).claimed().with(deleting).with(broken("CredentialsMissing")), state: StateDeleting, check: looksWithin(270*time.Second, 5*time.Minute)},
		{name: "a deleted host that goes is looked at at once",
			facts: facts(StateAvailable, off).with(deleting), state: StateDeleting, check: looksWithin(atOnce, atOnce)},
		{name: "a deleted host that was never worked on needs no BMC", facts: facts(StateRegistering, off).with(broken("CredentialsMissing")).with(deleting), state: StateDeleting},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Plan(c.facts)
			if d.Status.State != c.state || d.Action.Kind != c.action || d.Status.ErrorType != c.error {
				t.Errorf("state %q, action %q, error %q (%s)\nexpected %q, %q, %q", d.Status.State, d.Action.Kind, d.Status.ErrorType, d.Status.ErrorMessage, c.state, c.action, c.error)
			}
			if !strings.HasPrefix(d.Status.ErrorMessage, c.message) {
				t.Errorf("message %q, expected %q", d.Status.ErrorMessage, c.message)
			}
			if c.check != nil {
				c.check(t, d)
			}
			if d.RequeueAfter <= 0 && !d.RemoveFinalizer && c.facts.Host.CanBeObserved() {
				t.Error("nothing brings this host back")
			}
		})
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
func inUse(state State) Facts {
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

func TestAPausedHostIsNotTouchedAtAll(t *testing.T) {
	f := facts(StateProvisioned, hardware.PowerOff).claimed().with(deleting)
	f.Host.Paused, f.Host.HasImage = true, false
	d := Plan(f)
	if d.Status != f.Host.Status || d.Action.Kind != ActionNone || d.RemoveFinalizer || d.RequeueAfter != 0 || len(d.Events) != 0 {
		t.Errorf("decision = %+v", d)
	}
}

func TestARefusedActionShowsWhatAPersonMustMend(t *testing.T) {
	f := facts(StateProvisioning, hardware.PowerOff).claimed().attempted(2, hardware.OpInstall, hardware.AttemptRunning, "")
	d := Plan(f)
	if busy := d.WithActionError(f, hardware.Errorf(hardware.Busy, "install", "host", "later")); busy.Status.ErrorType != NoError || busy.RequeueAfter <= 0 {
		t.Errorf("busy: %+v", busy)
	}
	refused := d.WithActionError(f, hardware.Errorf(hardware.Unsupported, "boot", "host", "no network boot"))
	if refused.Status.ErrorType != ProvisioningError || refused.Status.ErrorMessage != "BMCUnsupported: boot on host: Unsupported: no network boot" || len(refused.Events) != 1 ||
		*refused.Record.Error != (v1alpha1.HostError{Reason: "BMCUnsupported", Message: "boot on host: Unsupported: no network boot"}) {
		t.Errorf("unsupported: %+v, %+v", refused, refused.Record.Error)
	}
}

func TestAPowerOffThatIsIgnoredIsAnErrorUntilThePowerIsOff(t *testing.T) {
	f := facts(StateProvisioned, hardware.PowerOn).claimed().installed().with(poweringOff(-time.Hour))
	f.Host.Online = false
	ignored := &hardware.Error{Kind: hardware.Ignored, Reason: hardware.ReasonPowerOffIgnored, Op: "set power Off", Err: errors.New("it still reports On")}
	d := Plan(f).WithActionError(f, ignored)
	if d.Status.ErrorType != PowerManagementError || d.Status.ErrorMessage != "PowerOffIgnored: it still reports On" || d.Record.Error.Reason != "PowerOffIgnored" || d.RequeueAfter != f.Timeouts.RetryBase {
		t.Errorf("first: %+v, %+v, again in %s", d.Status, d.Record.Error, d.RequeueAfter)
	}
	f.Host.Status, f.Record = d.Status, d.Record
	again := Plan(f).WithActionError(f, ignored)
	if again.Status.ErrorCount != 1 || len(again.Events) != 0 {
		t.Errorf("the same error is told again: %d, %+v", again.Status.ErrorCount, again.Events)
	}
	f.Observed.Power = hardware.PowerOff
	if d = Plan(f); d.Record.Error != nil || d.Status.ErrorType != NoError {
		t.Errorf("off: %+v, %+v", d.Status, d.Record.Error)
	}
	f = facts(StatePoweringOff, hardware.PowerOn).attempted(1, hardware.OpInspect, hardware.AttemptSucceeded, "").ended(0).with(deleting)
	f.Record.Error = &v1alpha1.HostError{Reason: "PowerOffIgnored"}
	if d = Plan(f); d.Status.State != StateDeleting {
		t.Errorf("a clean host that cannot be powered off is kept for ever in state %s", d.Status.State)
	}
}

func TestAFailedAttemptWhosePowerOffIsIgnoredIsOneError(t *testing.T) {
	for _, reason := range []hardware.Reason{hardware.ReasonDigestMismatch, hardware.ReasonPowerOffIgnored} {
		f := facts(StateProvisioning, hardware.PowerOn).claimed().attempted(2, hardware.OpInstall, hardware.AttemptFailed, reason).ended(3)
		ignored := &hardware.Error{Kind: hardware.Ignored, Reason: hardware.ReasonPowerOffIgnored, Op: "set power Off", Err: errors.New("it still reports On")}
		warnings := 0
		for look := range 3 {
			d := Plan(f).WithActionError(f, ignored)
			if e := d.Record.Error; e.Reason != string(reason) || !strings.HasPrefix(e.Message, "attempt 2 failed at Writing: seen; it is not tried again by itself") ||
				!strings.HasSuffix(e.Message, "; besides, PowerOffIgnored: it still reports On") || d.Status.ErrorType != ProvisioningError || d.Status.ErrorCount != 1 {
				t.Errorf("look %d: %+v, %+v", look, e, d.Status)
			}
			warnings += len(d.Events)
			f.Host.Status, f.Record = d.Status, d.Record
		}
		if warnings != 1 {
			t.Errorf("%s is told %d times", reason, warnings)
		}
		if e := Plan(f).WithActionError(f, hardware.Errorf(hardware.Unauthorized, "power", "host", "401")).Record.Error; e.Reason != v1alpha1.ReasonBMCUnauthorized {
			t.Errorf("the login is not known as refused, and is tried again with every look: %+v", e)
		}
	}
}

func TestAnErrorThatIsKeptWhileItsBMCIsSilentDoesNotGrow(t *testing.T) {
	f := facts(StateProvisioning, hardware.PowerOn).claimed().attempted(2, hardware.OpInstall, hardware.AttemptRunning, "")
	unsupported := hardware.Errorf(hardware.Unsupported, "boot", "host", "no network boot")
	d := Plan(f).WithActionError(f, unsupported)
	want := *d.Record.Error
	for look := range 3 {
		f.Host.Status, f.Record = d.Status, d.Record
		f = f.with(broken("BMCUnreachable"))
		if d = Plan(f).WithActionError(f, unsupported); *d.Record.Error != want || len(d.Events) != 0 {
			t.Errorf("look %d: %+v, %+v", look, d.Record.Error, d.Events)
		}
	}
	f = facts(StateDeprovisioning, hardware.PowerOff).installed().attempted(2, hardware.OpErase, hardware.AttemptFailed, hardware.ReasonDiskError).ended(3).with(deleting)
	d = Plan(f)
	want = *d.Record.Error
	if !strings.HasSuffix(want.Message, detachHint) {
		t.Errorf("a deleted host is kept without a word: %s", want.Message)
	}
	for look := range 3 {
		f.Host.Status, f.Record = d.Status, d.Record
		f = f.with(broken("BMCUnreachable"))
		if d = Plan(f); *d.Record.Error != want {
			t.Errorf("look %d: %d bytes, %d before: %s", look, len(d.Record.Error.Message), len(want.Message), d.Record.Error.Message)
		}
	}
}

func TestAChangeOfPowerIsTheSameAfterItsRecordWasRead(t *testing.T) {
	f := facts(StateProvisioned, hardware.PowerOn).claimed().installed().with(later(1234 * time.Nanosecond))
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

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	long := "a" + strings.Repeat("é", 3000)
	f := facts(StateProvisioning, hardware.PowerOff).claimed().attempted(4, hardware.OpInstall, hardware.AttemptFailed, hardware.ReasonDiskError).ended(1)
	f.Host.Retry = long
	if seen := Plan(f).Record.RetrySeen; !utf8.ValidString(seen) {
		t.Errorf("retrySeen %q: what the API server keeps of it would differ from the annotation, and be another request for ever", seen[250:])
	}
	f = facts(StateProvisioning, hardware.PowerOn).claimed().attempted(4, hardware.OpInstall, hardware.AttemptFailed, hardware.ReasonDiskError)
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
