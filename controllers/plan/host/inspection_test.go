package host

import (
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func byAgent(f *Facts) { f.Inspector = v1alpha1.SourceAgent }

// looked adds an inspection by the agent.
func (f Facts) looked(number int64, state hardware.AttemptState, reason hardware.Reason) Facts {
	f = f.attempted(number, hardware.OpInspect, state, reason).with(byAgent)
	f.Record.Wanted.Inspector = v1alpha1.SourceAgent
	f.Record.Inventory = &v1alpha1.HostInventory{}
	return f
}

// beginsLook expects an inspection by the agent as a record alone.
func beginsLook(number int64) func(*testing.T, Decision) {
	return func(t *testing.T, d Decision) {
		t.Helper()
		begins(number, hardware.OpInspect)(t, d)
		if w := d.Record.Wanted; !w.IsAgentInspection() || w.Deadline.Sub(w.Since.Time) != DefaultTimeouts().InspectAgent {
			t.Errorf("attempt = %+v, expected one by the agent with its own time limit", w)
		}
	}
}

func TestAnInspectionThatMayBootTheServerGetsTheTimeOfABoot(t *testing.T) {
	long, short := DefaultTimeouts().InspectAgent, DefaultTimeouts().Inspect
	for mayBoot, limit := range map[bool]time.Duration{true: long, false: short} {
		d := Plan(facts(metal3.StateInspecting, off).with(func(f *Facts) { f.BootsToInspect = mayBoot }))
		begins(1, hardware.OpInspect)(t, d)
		if w := d.Record.Wanted; w.Deadline.Sub(w.Since.Time) != limit {
			t.Errorf("an installer that may boot the server (%v) has from %s to %s, expected %s", mayBoot, w.Since, w.Deadline, limit)
		}
	}
}

// keepsAttempt expects that the attempt of the number is the last one.
func keepsAttempt(number int64) func(*testing.T, Decision) {
	return func(t *testing.T, d Decision) {
		t.Helper()
		if w := d.Record.Wanted; w == nil || w.Number != number {
			t.Errorf("attempt = %+v, expected number %d", w, number)
		}
	}
}

func TestTheAgentLooksAtAFreeServerThatIsOff(t *testing.T) {
	readByBMC := func(power hardware.PowerState) Facts {
		return facts(metal3.StateInspecting, power).attempted(1, hardware.OpInspect, succeeded, "").with(byAgent)
	}
	const inspecting, available = metal3.StateInspecting, metal3.StateAvailable
	checkDecisions(t, []decisionCase{
		{name: "the BMC is read first", facts: facts(inspecting, off).with(byAgent), state: inspecting, check: func(t *testing.T, d Decision) {
			if begins(1, hardware.OpInspect)(t, d); d.Record.Wanted.IsAgentInspection() {
				t.Error("the agent comes first")
			}
		}},
		{name: "then the agent is wanted", facts: readByBMC(off), state: inspecting, check: beginsLook(2)},
		{name: "it is booted", facts: facts(inspecting, off).looked(2, running, ""), state: inspecting, action: ActionInspect, check: func(t *testing.T, d Decision) {
			if d.Action.Inspector != hardware.InspectByAgent || d.Action.Attempt.Number != 2 {
				t.Errorf("action = %+v", d.Action)
			}
		}},
		{name: "and the host is available", facts: facts(inspecting, off).looked(2, succeeded, ""), state: available},
		{name: "a server that is on is left as it is", facts: readByBMC(on), state: inspecting, error: metal3.InspectionError, message: v1alpha1.ReasonServerIsOn, check: keepsAttempt(1)},
		{name: "one whose power nobody knows is waited for", facts: readByBMC(hardware.PowerUnknown), state: inspecting, check: keepsAttempt(1)},
		{name: "one that a person has powered on meanwhile keeps its power",
			facts: facts(inspecting, on).looked(2, failed, hardware.ReasonServerIsOn).ended(1).with(later(DefaultTimeouts().RetryBase)), state: inspecting,
			error: metal3.InspectionError, message: v1alpha1.ReasonServerIsOn, check: keepsAttempt(2)},
		{name: "a claimed host is not booted for it", facts: readByBMC(off).with(func(f *Facts) { f.Host.Claimed = true }), state: available},
		{name: "nor one that somebody else installs", facts: readByBMC(off).with(func(f *Facts) { f.Host.ExternallyProvisioned = true }), state: available},
		{name: "nor one with the data of a tenant", facts: readByBMC(off).with(func(f *Facts) { f.Record.LastTenant = "team/a" }), state: metal3.StateDeprovisioning, action: ActionNone},
		{name: "nor one whose inspection is disabled", facts: readByBMC(off).with(func(f *Facts) { f.Host.InspectionDisabled = true }), state: available},
		{name: "nor one that is paused", facts: readByBMC(off).with(func(f *Facts) { f.Host.Paused = true }), state: inspecting, check: keepsAttempt(1)},
		{name: "nor one that is detached", facts: readByBMC(off).with(func(f *Facts) { f.Host.Detached = true }), state: inspecting, check: keepsAttempt(1)},
		{name: "an available host is left alone", facts: facts(available, off).with(byAgent).attempted(1, hardware.OpInspect, succeeded, "").ended(0), state: available},
		{name: "until somebody asks for another look", facts: facts(available, off).looked(2, succeeded, "").ended(0).with(func(f *Facts) { f.Host.InspectionRequested = true }),
			state: inspecting, check: func(t *testing.T, d Decision) {
				if begins(3, hardware.OpInspect)(t, d); d.Record.Wanted.IsAgentInspection() {
					t.Error("the agent comes first")
				}
			}},
		{name: "the request is fulfilled by the look that was recorded before the process ended",
			facts: facts(available, off).attempted(3, hardware.OpInspect, running, "").with(byAgent).with(func(f *Facts) { f.Host.InspectionRequested = true }),
			state: inspecting, action: ActionInspect, check: func(t *testing.T, d Decision) {
				if !slices.Contains(d.RemoveAnnotations, AnnotationInspect) {
					t.Error("the annotation stays, so that the server is inspected twice")
				}
			}},
		{name: "a host whose status was lost while the agent looks is inspected on", facts: facts(metal3.StateNone, off).looked(2, failed, hardware.ReasonAgentMissing).ended(1), state: inspecting, error: metal3.InspectionError, message: "AgentMissing"},
		{name: "and one that was looked at is available", facts: facts(metal3.StateNone, off).looked(2, succeeded, "").ended(0), state: available},
	})
}

func TestALookThatFailsEndsWithThePowerOffAndIsTriedAgain(t *testing.T) {
	silent := func(power hardware.PowerState, failures int32) Facts {
		return facts(metal3.StateInspecting, power).looked(4, failed, hardware.ReasonAgentMissing).ended(failures)
	}
	const inspecting, reason = metal3.StateInspecting, "AgentMissing"
	checkDecisions(t, []decisionCase{
		{name: "the server is powered off", facts: silent(on, 1), state: inspecting, action: ActionSetPower, error: metal3.InspectionError, message: reason, check: asks(off, false)},
		{name: "after a pause the agent is booted again", facts: silent(off, 1).with(later(DefaultTimeouts().RetryBase)), state: inspecting, check: beginsLook(5)},
		{name: "three failures are enough", facts: silent(off, 3).with(later(DefaultTimeouts().InspectAgent)), state: inspecting, error: metal3.InspectionError, message: reason,
			check: func(t *testing.T, d Decision) {
				for _, text := range []string{v1alpha1.AnnotationRetry, "spec.inspectionMode to disabled"} {
					if !strings.Contains(d.Status.ErrorMessage, text) {
						t.Errorf("%q does not name %s", d.Status.ErrorMessage, text)
					}
				}
				keepsAttempt(4)(t, d)
			}},
		{name: "the annotation asks for more", facts: silent(off, 3).with(func(f *Facts) { f.Host.Retry = "again" }), state: inspecting, check: beginsLook(5)},
		{name: "without the NodeProvider's wish what the BMC said is enough", facts: silent(off, 3).with(func(f *Facts) { f.Inspector = v1alpha1.SourceBMC }), state: metal3.StateAvailable},
	})
}

func TestALookUnderWayEndsWhenTheHostIsNotFreeAnyMore(t *testing.T) {
	under := facts(metal3.StateInspecting, on).looked(2, running, "")
	checkDecisions(t, []decisionCase{
		{name: "a claim by hand", facts: under.with(func(f *Facts) { f.Host.Claimed = true }), state: metal3.StateInspecting, action: ActionCancel},
		{name: "a deletion", facts: under.with(deleting), state: metal3.StateDeprovisioning, action: ActionCancel},
		{name: "another wish of the NodeProvider lets it end by itself", facts: under.with(func(f *Facts) { f.Inspector = "" }), state: metal3.StateInspecting, action: ActionInspect},
	})
}
