package host

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	on, off                    = hardware.PowerOn, hardware.PowerOff
	running, succeeded, failed = hardware.AttemptRunning, hardware.AttemptSucceeded, hardware.AttemptFailed
)

// decisionCase is one Decision. What is not given is expected to be the zero value.
type decisionCase struct {
	name  string
	facts Facts
	// state, action and error are expected of the Decision. message is the expected beginning of the error message.
	state   metal3.ProvisioningState
	action  ActionKind
	error   metal3.ErrorType
	message string
	// check checks the rest; nil checks nothing more.
	check func(t *testing.T, d Decision)
}

func checkDecisions(t *testing.T, cases []decisionCase) {
	t.Helper()
	for _, c := range cases {
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
				t.Error("the host is never planned again")
			}
		})
	}
}

func TestANewHostIsInspectedAndThenAvailable(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a new host whose BMC answers is inspected", facts: facts(metal3.StateNone, off), state: metal3.StateInspecting},
		{name: "a new host whose inspection is disabled is available at once",
			facts: facts(metal3.StateRegistering, off).with(func(f *Facts) { f.Host.InspectionDisabled = true }), state: metal3.StateAvailable},
		{name: "the attempt to inspect is recorded before it is requested", facts: facts(metal3.StateInspecting, off), state: metal3.StateInspecting, check: begins(1, hardware.OpInspect)},
		{name: "a recorded inspection is requested", facts: facts(metal3.StateInspecting, off).attempted(1, hardware.OpInspect, running, ""), state: metal3.StateInspecting, action: ActionInspect},
		{name: "an inspected host that never had an installation is available without an erase",
			facts: facts(metal3.StateInspecting, off).attempted(1, hardware.OpInspect, succeeded, ""), state: metal3.StateAvailable},
		{name: "a failed inspection is tried again after a pause",
			facts: facts(metal3.StateInspecting, off).attempted(1, hardware.OpInspect, failed, hardware.ReasonDeadlineExceeded), state: metal3.StateInspecting, error: metal3.InspectionError, message: "DeadlineExceeded"},
		{name: "an available host that a person powered on is left on", facts: facts(metal3.StateAvailable, on), state: metal3.StateAvailable,
			check: func(t *testing.T, d Decision) {
				if !d.Status.PoweredOn {
					t.Error("poweredOn is not shown")
				}
			}},
	})
}

func TestAClaimedHostIsInstalledWithTheImageOfItsMachine(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a claimed host with an image is provisioned", facts: facts(metal3.StateAvailable, off).claimed(), state: metal3.StateProvisioning},
		{name: "an image that no Machine asked for is not installed",
			facts: facts(metal3.StateAvailable, off).with(func(f *Facts) { f.Host.HasImage, f.Host.Online = true, true }), state: metal3.StateAvailable, error: metal3.ProvisioningError, message: "NotClaimed"},
		{name: "a claim by another Machine than that of the record waits",
			facts: facts(metal3.StateProvisioning, off).claimed().with(func(f *Facts) { f.Host.ConsumerUID = "m2" }), state: metal3.StateProvisioning,
			check: func(t *testing.T, d Decision) {
				if d.Record.Wanted != nil {
					t.Errorf("attempt = %+v", d.Record.Wanted)
				}
			}},
		{name: "the tenant is recorded and the proof of the erase removed before the first byte",
			facts: facts(metal3.StateProvisioning, off).claimed().with(func(f *Facts) { f.Record.Erased = &v1alpha1.EraseProof{Mode: v1alpha1.EraseFull} }),
			state: metal3.StateProvisioning, check: func(t *testing.T, d Decision) {
				begins(1, hardware.OpInstall)(t, d)
				if d.Record.LastTenant != "team/research" || d.Record.Erased != nil || d.Record.Wanted.MachineUID != "m1" {
					t.Errorf("record = %+v", d.Record)
				}
			}},
		{name: "a recorded installation is requested", facts: facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, ""), state: metal3.StateProvisioning, action: ActionInstall},
		{name: "root device hints that the installer does not support prevent an installation",
			facts: facts(metal3.StateProvisioning, off).claimed().with(func(f *Facts) { f.Host.UnsupportedHints, f.SupportedHints = []string{"hctl"}, hardware.AgentHints() }),
			state: metal3.StateProvisioning, error: metal3.ProvisioningError, message: "RootDeviceHintsUnsupported: spec.rootDeviceHints has hctl"},
		{name: "a successful installation provisions the host and says what is on it",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, succeeded, ""), state: metal3.StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if i := d.Record.Installed; i == nil || i.MachineUID != "m1" || i.Attempt != 1 || i.Revision != "r1" || i.Checksum != "sha256:aa" {
					t.Errorf("installed = %+v", i)
				}
			}},
	})
}

func TestAFailedAttemptIsTriedAgainAfterAPause(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a failed installation reports its reason and the time of the next attempt",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest), state: metal3.StateProvisioning,
			action: ActionSetPower, check: asks(off, false),
			error: metal3.ProvisioningError, message: "NoBootRequest: attempt 2 failed at Writing: seen; failure 1 of 3, the next attempt is at 2026-11-20T12:01:00Z"},
		{name: "after the pause the next attempt has the next number",
			facts: facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(1).with(later(time.Minute)),
			state: metal3.StateProvisioning, check: begins(3, hardware.OpInstall)},
		{name: "the next attempt waits for the power-off, because an older system on the disk may have booted",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(1).with(later(time.Minute)),
			state: metal3.StateProvisioning, action: ActionSetPower, check: asks(off, false)},
		{name: "the pause doubles with each failure",
			facts: facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(2).with(later(time.Minute)),
			state: metal3.StateProvisioning, error: metal3.ProvisioningError, message: "NoBootRequest"},
		{name: "after three failures in a row there is no attempt without a manual retry",
			facts: facts(metal3.StateProvisioning, off).claimed().attempted(4, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(3).with(later(time.Hour)),
			state: metal3.StateProvisioning, error: metal3.ProvisioningError, message: "NoBootRequest: attempt 4 failed at Writing: seen; it is not tried again by itself"},
		{name: "a wrong digest is not tried again automatically",
			facts: facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonDigestMismatch).ended(1).with(later(time.Hour)),
			state: metal3.StateProvisioning, error: metal3.ProvisioningError, message: "DigestMismatch"},
		{name: "a new value of the retry annotation begins another attempt",
			facts: facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonDigestMismatch).ended(1).with(func(f *Facts) { f.Host.Retry = "mended" }),
			state: metal3.StateProvisioning, check: begins(3, hardware.OpInstall)},
		{name: "an old value of the retry annotation begins nothing",
			facts: facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonDigestMismatch).ended(1).with(func(f *Facts) { f.Host.Retry, f.Record.RetrySeen = "x", "x" }),
			state: metal3.StateProvisioning, error: metal3.ProvisioningError},
		{name: "another attempt of the Machine begins although the one before failed for good",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(4, hardware.OpInstall, failed, hardware.ReasonDigestMismatch).ended(3).with(func(f *Facts) { f.Spec.Attempt = 2 }),
			state: metal3.StateProvisioning, check: begins(5, hardware.OpInstall)},
		{name: "an attempt that its installer never ends fails after its deadline",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(later(33 * time.Minute)),
			state: metal3.StateProvisioning, action: ActionSetPower, error: metal3.ProvisioningError, message: "DeadlineExceeded"},
	})
}

func TestARunningInstallationIsCancelledWhenItsMachineNeedsSomethingElse(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a running installation is cancelled for another attempt of the Machine",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) { f.Spec.Attempt = 2 }),
			state: metal3.StateProvisioning, action: ActionCancel},
		{name: "a running installation is cancelled for another image of the same attempt",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(otherImage), state: metal3.StateProvisioning, action: ActionCancel},
		{name: "a host taken offline while it is installed has its attempt cancelled",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) { f.Host.Online = false }),
			state: metal3.StateProvisioning, action: ActionCancel},
		{name: "a host released while it is installed has its attempt cancelled",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(func(f *Facts) { f.Host.HasImage = false }),
			state: metal3.StateProvisioning, action: ActionCancel},
		{name: "the host is powered off after a cancelled installation",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonCancelled).ended(0).with(func(f *Facts) { f.Host.Online = false }),
			state: metal3.StateProvisioning, action: ActionSetPower, check: asks(off, false)},
	})
}

func TestAProvisionedHostIsInstalledAgainInPlace(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a provisioned host installs its Machine's next attempt",
			facts: facts(metal3.StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Spec.Attempt = 2 }), state: metal3.StateProvisioning},
		{name: "a provisioned host installs another image",
			facts: facts(metal3.StateProvisioned, off).claimed().installed().with(otherImage), state: metal3.StateProvisioning},
		{name: "a provisioned host that is to be off installs nothing yet",
			facts: facts(metal3.StateProvisioned, off).claimed().installed().with(otherImage).with(func(f *Facts) { f.Spec.Attempt, f.Host.Online = 2, false }), state: metal3.StateProvisioned},
		{name: "the next attempt in place is an installation, not an erase",
			facts: facts(metal3.StateProvisioning, off).claimed().installed().attempted(2, hardware.OpInstall, succeeded, "").ended(0).with(otherImage).with(func(f *Facts) { f.Spec.Attempt = 2 }),
			state: metal3.StateProvisioning, check: func(t *testing.T, d Decision) {
				begins(3, hardware.OpInstall)(t, d)
				if d.Record.Installed != nil || d.Record.LastTenant != "team/research" || d.Record.Wanted.Image.Checksum != "sha256:bb" {
					t.Errorf("record = %+v, attempt %+v", d.Record, d.Record.Wanted)
				}
			}},
		{name: "an image that is put back after a release without an erase is installed",
			facts: facts(metal3.StateAvailable, off).claimed().attempted(2, hardware.OpInstall, succeeded, "").ended(0).with(func(f *Facts) {
				f.Record.Erased = &v1alpha1.EraseProof{Mode: v1alpha1.EraseNone, Attempt: 2}
			}), state: metal3.StateProvisioning, check: begins(3, hardware.OpInstall)},
		{name: "a provisioned host without an image is deprovisioned",
			facts: facts(metal3.StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Host.HasImage = false }), state: metal3.StateDeprovisioning},
	})
}

func TestAHostStaysWithTheMachineThatRunsOnIt(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a host whose status was lost stays with the Machine that runs on it", facts: inUse(metal3.StateNone), state: metal3.StateProvisioned},
		{name: "a host whose status says inspecting stays with the Machine that runs on it", facts: inUse(metal3.StateInspecting), state: metal3.StateProvisioned},
		{name: "a host whose status says available stays with the Machine that runs on it", facts: inUse(metal3.StateAvailable), state: metal3.StateProvisioned},
		{name: "a host whose status says preparing stays with the Machine that runs on it", facts: inUse(metal3.StatePreparing), state: metal3.StateProvisioned},
		{name: "a host whose state is another system's stays with the Machine that runs on it", facts: inUse("matching"), state: metal3.StateProvisioned},
		{name: "a host whose status was lost and that another Machine left is erased",
			facts: inUse(metal3.StateNone).with(func(f *Facts) { f.Record.Installed.MachineUID = "m0" }), state: metal3.StateDeprovisioning, action: ActionSetPower},
		{name: "a host whose status was lost while it was erased is erased",
			facts: inUse(metal3.StateNone).attempted(3, hardware.OpErase, failed, hardware.ReasonDiskError).ended(0), state: metal3.StateDeprovisioning, action: ActionSetPower},
		{name: "a provisioned host whose record was lost stays provisioned",
			facts: facts(metal3.StateProvisioned, on).claimed().with(func(f *Facts) { f.Record = v1alpha1.HostRecordStatus{} }), state: metal3.StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if d.Record.LastTenant != "team/research" || d.Record.Installed == nil {
					t.Errorf("record = %+v", d.Record)
				}
			}},
		{name: "nothing is done with a host whose record an earlier version of Ingot wrote",
			facts: facts(metal3.StateProvisioning, on).claimed().with(func(f *Facts) {
				f.Record.Attempt = &v1alpha1.HostAttempt{Number: 1, State: "Succeeded"}
				f.Observed.Attempt = &hardware.AttemptStatus{Number: 1, State: succeeded}
			}),
			state: metal3.StateProvisioning, error: metal3.RegistrationError, message: "OlderShape: an earlier version of Ingot wrote the HostRecord", check: func(t *testing.T, d Decision) {
				if d.Record.Wanted != nil || d.Record.Installed != nil || d.Record.Error.Reason != v1alpha1.ReasonOlderShape || len(d.Events) != 1 {
					t.Errorf("record = %+v, events %+v", d.Record, d.Events)
				}
			}},
	})
}

func TestABMCThatCannotBeReadIsReportedAndDeprovisionsNothing(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a host whose BMC refuses the credentials stays registering and reports it",
			facts: facts(metal3.StateNone, off).with(broken("BMCUnauthorized")), state: metal3.StateRegistering, error: metal3.RegistrationError, message: "BMCUnauthorized: no answer"},
		{name: "a provisioned host reports no error during the grace period",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(broken("BMCUnreachable")), state: metal3.StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if !d.Status.PoweredOn || d.Record.Power.State != "Unknown" {
					t.Errorf("poweredOn %v, power %+v", d.Status.PoweredOn, d.Record.Power)
				}
			}},
		{name: "a provisioned host reports an error after the grace period and stays provisioned",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(broken("BMCUnreachable")).with(failingSince(v1alpha1.CallObserve, "BMCUnreachable", -time.Minute)),
			state: metal3.StateProvisioned, error: metal3.PowerManagementError, message: "BMCUnreachable"},
		{name: "a provisioned host whose BMC refuses the credentials reports it at once",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(broken("BMCUnauthorized")), state: metal3.StateProvisioned, error: metal3.PowerManagementError, message: "BMCUnauthorized"},
		{name: "an installation continues while the BMC does not answer",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(broken("BMCUnreachable")), state: metal3.StateProvisioning, action: ActionInstall},
		{name: "an installation does not continue without credentials",
			facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(broken("CredentialsMissing")).with(func(f *Facts) { f.Observed = nil }),
			state: metal3.StateProvisioning, error: metal3.PowerManagementError, message: "CredentialsMissing"},
	})
}

func TestThePowerFollowsSpecOnlineAndTheRebootAnnotations(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a host that is taken offline is shut down gracefully",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Online = false }),
			state: metal3.StateProvisioned, action: ActionSetPower, check: asks(off, true)},
		{name: "a power change in progress keeps the time of its first request",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Online = false }).with(poweringOff(-time.Minute)),
			state: metal3.StateProvisioned, action: ActionSetPower, check: func(t *testing.T, d Decision) {
				asks(off, true)(t, d)
				if !d.Action.Power.Since.Equal(noon.Add(-time.Minute)) || !d.Record.Power.ObservedAt.Time.Equal(d.Action.Power.Since) {
					t.Errorf("since %s, recorded %s", d.Action.Power.Since, d.Record.Power.ObservedAt)
				}
			}},
		{name: "a power change for an earlier generation is another one",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Online, f.Host.Generation = false, 4 }).with(poweringOff(-time.Minute)),
			state: metal3.StateProvisioned, action: ActionSetPower, check: func(t *testing.T, d Decision) {
				if !d.Action.Power.Since.Equal(noon) {
					t.Errorf("since %s", d.Action.Power.Since)
				}
			}},
		{name: "a confirmed power-off is recorded for this generation",
			facts: facts(metal3.StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Host.Online, f.Host.Generation = false, 4 }), state: metal3.StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if p := d.Record.Power; p.State != "Off" || p.ObservedGeneration != 4 || !p.ObservedAt.Time.Equal(noon) {
					t.Errorf("power = %+v", p)
				}
			}},
		{name: "a provisioned host that lost its power is powered on",
			facts: facts(metal3.StateProvisioned, off).claimed().installed(), state: metal3.StateProvisioned, action: ActionSetPower, check: asks(on, false)},
		{name: "a provisioned host that lost its power waits for its turn",
			facts: facts(metal3.StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.PowerOnWait = 7 * time.Second }), state: metal3.StateProvisioned,
			check: func(t *testing.T, d Decision) {
				if !d.IsFoundOff || d.RequeueAfter != 7*time.Second || d.WaitingFor != "its turn to be powered on" {
					t.Errorf("%+v", d)
				}
			}},
		{name: "a host that a person wants on waits for nobody",
			facts: facts(metal3.StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.PowerOnWait, f.Host.Generation = time.Minute, 4 }), state: metal3.StateProvisioned,
			action: ActionSetPower, check: asks(on, false)},
		{name: "a host that is being powered on needs no turn",
			facts: facts(metal3.StateProvisioned, off).claimed().installed().with(func(f *Facts) {
				f.PowerOnWait, f.Record.Power.State = time.Minute, string(hardware.PowerTurningOn)
			}), state: metal3.StateProvisioned, action: ActionSetPower, check: asks(on, false)},
		{name: "a claimed host that a person powered on is powered off when its Machine requests that",
			facts: facts(metal3.StateAvailable, on).claimed().with(func(f *Facts) { f.Host.Online = false }), state: metal3.StateAvailable, action: ActionSetPower, check: asks(off, false)},
		{name: "a hard reboot powers off without a shutdown", facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Reboot, f.Host.RebootHard, f.Host.RebootOnce = true, true, true }),
			state: metal3.StateProvisioned, action: ActionSetPower, check: asks(off, false)},
		{name: "the reboot annotation is removed when the host is off", facts: facts(metal3.StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Host.Reboot, f.Host.RebootOnce = true, true }),
			state: metal3.StateProvisioned, check: func(t *testing.T, d Decision) {
				if len(d.RemoveAnnotations) != 1 || d.RemoveAnnotations[0] != AnnotationReboot {
					t.Errorf("drops %v", d.RemoveAnnotations)
				}
			}},
		{name: "a reboot annotation with a suffix keeps the host off", facts: facts(metal3.StateProvisioned, off).claimed().installed().with(func(f *Facts) { f.Host.Reboot = true }), state: metal3.StateProvisioned},
	})
}

func TestAHostIsObservedMoreOftenDuringItsFirstBoot(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a host that boots for the first time is observed often, so that a power loss is noticed",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Record.Installed.At = at(-time.Minute) }), state: metal3.StateProvisioned,
			check: looksWithin(27*time.Second, 30*time.Second)},
		{name: "a host whose Machine has a Node is observed at the idle interval",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Record.Installed.At, f.Joined = at(-time.Minute), true }), state: metal3.StateProvisioned,
			check: looksWithin(270*time.Second, 5*time.Minute)},
		{name: "a host that was installed long ago is observed at the idle interval",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Record.Installed.At = at(-time.Hour) }), state: metal3.StateProvisioned,
			check: looksWithin(270*time.Second, 5*time.Minute)},
	})
}

func TestAHostWithUnknownOrTenantContentIsErasedBeforeItIsAvailable(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "an available host of a tenant without proof of an erase is erased",
			facts: facts(metal3.StateAvailable, off).with(func(f *Facts) { f.Record.LastTenant = "team/research" }), state: metal3.StateDeprovisioning},
		{name: "an available host whose record is new has unknown content",
			facts: facts(metal3.StateAvailable, off).with(func(f *Facts) { f.Record.Power = nil }), state: metal3.StateDeprovisioning,
			check: func(t *testing.T, d Decision) {
				if d.Record.LastTenant != unknownTenant {
					t.Errorf("lastTenant = %q", d.Record.LastTenant)
				}
			}},
		{name: "no disk is erased before the power-off is confirmed", facts: facts(metal3.StateDeprovisioning, on).claimed().installed(), state: metal3.StateDeprovisioning,
			action: ActionSetPower, check: asks(off, true)},
		{name: "an erase has the mode that the Machine requests", facts: facts(metal3.StateDeprovisioning, off).claimed().installed(), state: metal3.StateDeprovisioning,
			check: func(t *testing.T, d Decision) {
				begins(noon.Unix()+1, hardware.OpErase)(t, d)
				if a := d.Record.Wanted; a.Erase != v1alpha1.EraseFull || a.Deadline.Sub(noon) != 24*time.Hour {
					t.Errorf("attempt = %+v", a)
				}
			}},
		{name: "an erase has the mode of the provider when the Machine requests none",
			facts: facts(metal3.StateDeprovisioning, off).installed(), state: metal3.StateDeprovisioning, check: func(t *testing.T, d Decision) {
				if d.Record.Wanted == nil || d.Record.Wanted.Erase != v1alpha1.EraseMetadata {
					t.Errorf("attempt = %+v", d.Record.Wanted)
				}
			}},
		{name: "the policy None leaves proof with the mode None",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().with(func(f *Facts) { f.Spec.Erase = v1alpha1.EraseNone }), state: metal3.StateAvailable,
			check: func(t *testing.T, d Decision) {
				if d.Record.Erased == nil || d.Record.Erased.Mode != v1alpha1.EraseNone || d.Record.Erased.Tenant != "team/research" {
					t.Errorf("erased = %+v", d.Record.Erased)
				}
			}},
		{name: "the policy None does not apply to unknown content",
			facts: facts(metal3.StateDeprovisioning, off).with(func(f *Facts) { f.Record.LastTenant, f.ErasePolicy = unknownTenant, v1alpha1.EraseNone }),
			state: metal3.StateDeprovisioning, check: begins(noon.Unix()+1, hardware.OpErase)},
		{name: "an erase counts only after the power-off",
			facts: facts(metal3.StateDeprovisioning, on).claimed().installed().attempted(3, hardware.OpErase, succeeded, ""), state: metal3.StateDeprovisioning, action: ActionSetPower},
		{name: "a finished erase makes the host available and keeps the last tenant",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, succeeded, ""), state: metal3.StateAvailable,
			check: func(t *testing.T, d Decision) {
				e := d.Record.Erased
				if e == nil || e.Attempt != 3 || e.Mode != v1alpha1.EraseFull || e.Tenant != "team/research" || d.Record.Installed != nil || d.Record.LastTenant != "team/research" {
					t.Errorf("erased = %+v, record = %+v", e, d.Record)
				}
			}},
		{name: "an old erase without proof does not count",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, succeeded, "").ended(0), state: metal3.StateDeprovisioning,
			check: begins(4, hardware.OpErase)},
		{name: "a failed erase keeps the host in deprovisioning",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, failed, hardware.ReasonDiskError), state: metal3.StateDeprovisioning, error: metal3.ProvisioningError, message: "DiskError"},
		{name: "an erase that failed three times waits for a manual retry",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, failed, hardware.ReasonDiskError).ended(3).with(later(24 * time.Hour)),
			state: metal3.StateDeprovisioning, error: metal3.ProvisioningError, message: "DiskError: attempt 3 failed at Writing: seen; it is not tried again by itself"},
		{name: "a failed full erase is not replaced by a weaker one",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, failed, hardware.ReasonDiskError).ended(1).
				with(func(f *Facts) { f.Spec.Erase = v1alpha1.EraseNone }).with(later(time.Hour)),
			state: metal3.StateDeprovisioning, check: func(t *testing.T, d Decision) {
				begins(4, hardware.OpErase)(t, d)
				if d.Record.Wanted.Erase != v1alpha1.EraseFull {
					t.Errorf("mode = %s", d.Record.Wanted.Erase)
				}
			}},
		{name: "an erase that has succeeded waits for its power-off after the deadline too",
			facts: facts(metal3.StateDeprovisioning, on).claimed().installed().attempted(3, hardware.OpErase, succeeded, "").with(later(24 * time.Hour)),
			state: metal3.StateDeprovisioning, action: ActionSetPower, check: func(t *testing.T, d Decision) {
				if w := d.Record.Wanted; w.Number != 3 || !w.IsOpen() {
					t.Errorf("attempt = %+v", w)
				}
			}},
	})
}

func TestTheEraseAnnotationErasesAnUnclaimedHost(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "the annotation begins an erase of an unclaimed host", facts: facts(metal3.StateAvailable, off).with(func(f *Facts) { f.Host.Erase = "Full" }),
			state: metal3.StatePreparing, check: begins(1, hardware.OpErase)},
		{name: "an unknown mode is refused", facts: facts(metal3.StateAvailable, off).with(func(f *Facts) { f.Host.Erase = "Everything" }),
			state: metal3.StateAvailable, error: metal3.PreparationError, message: `EraseModeInvalid: annotation ingot.dev/erase is "Everything"`},
		{name: "the annotation is removed when its erase has succeeded", facts: facts(metal3.StatePreparing, off).attempted(1, hardware.OpErase, succeeded, "").with(func(f *Facts) { f.Host.Erase = "Full" }), state: metal3.StateAvailable,
			check: func(t *testing.T, d Decision) {
				if len(d.RemoveAnnotations) != 1 || d.Record.Erased == nil {
					t.Errorf("drops %v, erased %+v", d.RemoveAnnotations, d.Record.Erased)
				}
			}},
		{name: "the annotation stays when a weaker erase has succeeded, and the host is planned again at once",
			facts: facts(metal3.StatePreparing, off).attempted(1, hardware.OpErase, succeeded, "").with(func(f *Facts) { f.Host.Erase, f.Record.Wanted.Erase = "Full", v1alpha1.EraseMetadata }),
			state: metal3.StateAvailable, check: func(t *testing.T, d Decision) {
				if len(d.RemoveAnnotations) != 0 || d.Record.Erased == nil || d.RequeueAfter != atOnce {
					t.Errorf("drops %v, erased %+v, again in %s", d.RemoveAnnotations, d.Record.Erased, d.RequeueAfter)
				}
			}},
		{name: "an annotation with an unknown mode stays after an erase",
			facts: facts(metal3.StatePreparing, off).attempted(1, hardware.OpErase, succeeded, "").with(func(f *Facts) { f.Host.Erase = "Everything" }),
			state: metal3.StateAvailable, error: metal3.PreparationError, message: "EraseModeInvalid", check: func(t *testing.T, d Decision) {
				if len(d.RemoveAnnotations) != 0 {
					t.Errorf("drops %v", d.RemoveAnnotations)
				}
			}},
		{name: "an erase by annotation without proof is made again",
			facts: facts(metal3.StatePreparing, off).attempted(1, hardware.OpErase, succeeded, "").ended(0), state: metal3.StatePreparing, check: begins(2, hardware.OpErase)},
	})
}

func TestADeletedHostIsErasedAndPoweredOffBeforeItIsRemoved(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "a deleted host with a tenant's data is erased first", facts: facts(metal3.StateProvisioned, off).installed().with(deleting), state: metal3.StateDeprovisioning, check: begins(noon.Unix()+1, hardware.OpErase)},
		{name: "a running erase of a deleted host continues",
			facts: facts(metal3.StatePreparing, on).attempted(1, hardware.OpErase, running, "").with(deleting), state: metal3.StateDeprovisioning, action: ActionErase},
		{name: "a deleted clean host is powered off", facts: facts(metal3.StateAvailable, on).attempted(1, hardware.OpInspect, succeeded, "").ended(0).with(deleting),
			state: metal3.StatePoweringOffBeforeDelete, action: ActionSetPower, check: asks(off, false)},
		{name: "a deleted clean host that is off is deleted", facts: facts(metal3.StateAvailable, off).attempted(1, hardware.OpInspect, succeeded, "").ended(0).with(deleting), state: metal3.StateDeleting},
		{name: "a deleted host that was never used needs no BMC", facts: facts(metal3.StateRegistering, off).with(broken("CredentialsMissing")).with(deleting), state: metal3.StateDeleting},
		{name: "a deleted host that is ready to go is planned again at once",
			facts: facts(metal3.StateAvailable, off).with(deleting), state: metal3.StateDeleting, check: looksWithin(atOnce, atOnce)},
		{name: "a deleting host that is claimed again waits for its BMC",
			facts: facts(metal3.StateDeleting, off).claimed().with(deleting).with(broken("CredentialsMissing")), state: metal3.StateDeleting, check: looksWithin(270*time.Second, 5*time.Minute)},
		{name: "a deleted host that a Machine has is kept", facts: facts(metal3.StateProvisioned, on).claimed().installed().with(deleting), state: metal3.StateProvisioned},
		{name: "a deleted host that is detached is removed as it is, although a Machine has it",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(deleting).with(func(f *Facts) { f.Host.Detached, f.Observed = true, nil }), state: metal3.StateDeleting},
		{name: "a detached host keeps its last state and is left alone",
			facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) { f.Host.Detached, f.Host.HasImage, f.Observed = true, false, nil }),
			state: metal3.StateProvisioned, check: func(t *testing.T, d Decision) {
				if d.Status.OperationalStatus != metal3.OperationalStatusDetached || d.Record.Power.State != "On" {
					t.Errorf("%+v %+v", d.Status, d.Record.Power)
				}
			}},
	})
}

// The installer keeps the status of an attempt under its number, so that an attempt with the number of an earlier one would be taken for that.
func TestTheNumberOfAnAttemptNeverRepeats(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "the number is above that of the attempt that the installer has recorded",
			facts: facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(1).with(later(time.Minute)).
				with(func(f *Facts) { f.Record.Attempt = &v1alpha1.HostAttempt{Number: 7, State: "Succeeded"} }),
			state: metal3.StateProvisioning, check: begins(8, hardware.OpInstall)},
		{name: "the number is above that of the attempt that the installer reports",
			facts: facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, failed, hardware.ReasonNoBootRequest).ended(1).with(later(time.Minute)).
				with(installerReports(9)),
			state: metal3.StateProvisioning, check: begins(10, hardware.OpInstall)},
		{name: "after a lost record the number is above the seconds since 1970",
			facts: facts(metal3.StateDeprovisioning, off).with(lostRecord), state: metal3.StateDeprovisioning, check: begins(noon.Unix()+1, hardware.OpErase)},
		{name: "after a lost record the number is above that of the attempt that the installer reports",
			facts: facts(metal3.StateDeprovisioning, off).with(lostRecord).with(installerReports(noon.Unix() + 40)),
			state: metal3.StateDeprovisioning, check: begins(noon.Unix()+41, hardware.OpErase)},
	})
}

// A lost record of a host that runs a node is the worst case: its next attempt must not have the number of one that was made.
func TestTheNextAttemptAfterALostRecordHasAHigherNumberThanAllBefore(t *testing.T) {
	f := facts(metal3.StateProvisioned, off).claimed().installed().with(lostRecord)
	first := Plan(f)
	if first.Status.State != metal3.StateProvisioned || first.Record.Installed == nil || first.Record.Wanted != nil {
		t.Fatalf("a host whose record was lost: %s, %+v", first.Status.State, first.Record)
	}
	f.Host.Status, f.Record, f.Spec.Attempt = first.Status, first.Record, 8
	second := Plan(f)
	if second.Status.State != metal3.StateProvisioning {
		t.Fatalf("state %s", second.Status.State)
	}
	begins(noon.Unix()+1, hardware.OpInstall)(t, second)
	f.Host.Status, f.Record = second.Status, second.Record
	f.Observed.Attempt = &hardware.AttemptStatus{Number: second.Record.Wanted.Number, State: failed, Reason: hardware.ReasonNoBootRequest}
	third := Plan(f)
	f.Host.Status, f.Record = third.Status, third.Record
	begins(noon.Unix()+2, hardware.OpInstall)(t, Plan(f.with(later(time.Hour))))
}

func lostRecord(f *Facts) { f.Record = v1alpha1.HostRecordStatus{} }

func installerReports(number int64) func(*Facts) {
	return func(f *Facts) { f.Observed.Attempt = &hardware.AttemptStatus{Number: number, State: succeeded} }
}
