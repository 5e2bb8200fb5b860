package host

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// TestAWrongBootAddressHoldsInspectionsErasesAndInstallations: every attempt powers its server on.
func TestAWrongBootAddressHoldsInspectionsErasesAndInstallations(t *testing.T) {
	failedOnce := func(f Facts, op hardware.Operation) Facts {
		return f.attempted(2, op, failed, hardware.ReasonNoBootRequest).ended(1).with(later(time.Minute))
	}
	released := facts(metal3.StateDeprovisioning, off).installed()
	for _, c := range []struct {
		name  string
		facts Facts
		error metal3.ErrorType
		held  metal3.ProvisioningState
		op    hardware.Operation
	}{
		{"the inspection of a new host", facts(metal3.StateInspecting, off), metal3.InspectionError, metal3.StateInspecting, hardware.OpInspect},
		{"an inspection that failed", failedOnce(facts(metal3.StateInspecting, off), hardware.OpInspect), metal3.InspectionError, metal3.StateInspecting, hardware.OpInspect},
		{"an inspection by annotation", facts(metal3.StateAvailable, off).with(func(f *Facts) { f.Host.InspectionRequested = true }), metal3.InspectionError, metal3.StateAvailable, hardware.OpInspect},
		{"an installation", facts(metal3.StateProvisioning, off).claimed(), metal3.ProvisioningError, metal3.StateProvisioning, hardware.OpInstall},
		{"an installation that failed", failedOnce(facts(metal3.StateProvisioning, off).claimed(), hardware.OpInstall), metal3.ProvisioningError, metal3.StateProvisioning, hardware.OpInstall},
		{"the erase of a host that a tenant released", released, metal3.ProvisioningError, metal3.StateDeprovisioning, hardware.OpErase},
		{"such an erase that failed", failedOnce(released, hardware.OpErase), metal3.ProvisioningError, metal3.StateDeprovisioning, hardware.OpErase},
		{"the erase of a host that is deleted", released.with(func(f *Facts) { f.Host.Deleting = true }), metal3.ProvisioningError, metal3.StateDeprovisioning, hardware.OpErase},
		{"an erase by annotation", facts(metal3.StateAvailable, off).with(func(f *Facts) { f.Host.Erase = "Full" }), metal3.PreparationError, metal3.StateAvailable, hardware.OpErase},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := c.facts.with(func(f *Facts) { f.BootProblem = "NodeProvider p: something else answers" })
			d := Plan(wrong)
			if d.Status.State != c.held || d.Action.Kind != ActionNone || d.Record.Wanted.IsOpen() || d.Record.Erased != nil || len(d.RemoveAnnotations) > 0 || d.RequeueAfter <= 0 {
				t.Errorf("state %s, action %q, attempt %+v, proof %+v, annotations %v, again after %s", d.Status.State, d.Action.Kind, d.Record.Wanted, d.Record.Erased, d.RemoveAnnotations, d.RequeueAfter)
			}
			if e := d.Record.Error; e == nil || e.Reason != v1alpha1.ReasonBootAddressWrong || d.Status.ErrorType != c.error {
				t.Errorf("%q error %+v", d.Status.ErrorType, e)
			}
			corrected := c.facts
			corrected.Host.Status, corrected.Record = d.Status, d.Record
			if d = Plan(corrected); !d.Record.Wanted.IsOpen() || d.Record.Wanted.Operation != string(c.op) || d.Status.ErrorType != "" {
				t.Errorf("it does not go on: %s, %+v, %s", d.Status.State, d.Record.Wanted, d.Status.ErrorMessage)
			}
		})
	}
}

func TestAWrongBootAddressLeavesAloneWhatNeedsNoBoot(t *testing.T) {
	wrong := func(f *Facts) { f.BootProblem = "something else answers" }
	skipped := facts(metal3.StateDeprovisioning, off).installed().with(wrong)
	skipped.Spec.Erase = v1alpha1.EraseNone
	checkDecisions(t, []decisionCase{
		{name: "an attempt that is under way goes on", facts: facts(metal3.StateDeprovisioning, on).attempted(2, hardware.OpErase, running, "").with(wrong), state: metal3.StateDeprovisioning, action: ActionErase},
		{name: "a released host is powered off", facts: facts(metal3.StateDeprovisioning, on).installed().with(wrong), state: metal3.StateDeprovisioning, action: ActionSetPower, check: asks(off, true)},
		{name: "a node runs on", facts: inUse(metal3.StateProvisioned).with(wrong), state: metal3.StateProvisioned},
		{name: "an available host has no error", facts: facts(metal3.StateAvailable, off).with(wrong), state: metal3.StateAvailable},
		{name: "a policy without an erase asks for no boot", facts: skipped, state: metal3.StateAvailable},
	})
}
