package host

import (
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// gone says that the Machine of a claimed host does not exist any more.
func gone(f *Facts) { f.Spec.MachineGone = &v1alpha1.MachineGone{UID: "m1", Since: at(0)} }

func TestAHostWhoseMachineIsGoneIsLeftAsItIsAndSaysTheWayBack(t *testing.T) {
	const message = "MachineGone: Machine team/a with uid m1, which has this host, does not exist any more and did not release it"
	says := func(parts ...string) func(*testing.T, Decision) {
		return func(t *testing.T, d Decision) {
			for _, part := range parts {
				if !strings.Contains(d.Status.ErrorMessage, part) {
					t.Errorf("%q does not say %q", d.Status.ErrorMessage, part)
				}
			}
			if e := d.Record.Error; e == nil || !strings.HasPrefix(d.Status.ErrorMessage, e.Reason+": ") {
				t.Errorf("error of the HostRecord: %+v", e)
			}
		}
	}
	provisioned := facts(metal3.StateProvisioned, on).claimed().installed().with(gone)
	checkDecisions(t, []decisionCase{
		{name: "a node goes on", facts: provisioned, state: metal3.StateProvisioned, error: metal3.ProvisionedRegistrationError, message: message,
			check: says("if the server is on, what runs there goes on", "ingot.dev/release=m1", "kubectl delete node a", "TenantCluster team/research")},
		{name: "a Machine of its name was made", facts: provisioned.with(func(f *Facts) { f.Spec.MachineGone = &v1alpha1.MachineGone{UID: "m1", OtherUID: "m2"} }), state: metal3.StateProvisioned, error: metal3.ProvisionedRegistrationError,
			message: message, check: says("a Machine of that name with uid m2 does")},
		{name: "its BMC does not answer", facts: provisioned.with(broken("BMCUnreachable")).with(failingSince(v1alpha1.CallObserve, "BMCUnreachable", -time.Hour)), state: metal3.StateProvisioned,
			error: metal3.ProvisionedRegistrationError, message: message, check: says("besides, BMCUnreachable: no answer")},
		{name: "its BMC refuses the credentials", facts: provisioned.with(broken("BMCUnauthorized")), state: metal3.StateProvisioned, error: metal3.PowerManagementError, message: "BMCUnauthorized: no answer", check: says("besides, MachineGone: ")},
		{name: "the release is requested", facts: provisioned.with(func(f *Facts) { f.Host.HasImage, f.Host.Online, f.Host.Release = false, false, "m1" }), state: metal3.StateDeprovisioning, action: ActionSetPower, error: metal3.ProvisionedRegistrationError,
			message: message, check: says("being powered off, erased and freed", "kubectl delete node a")},
		{name: "the release is requested, and another host is the server", facts: provisioned.with(duplicate).with(func(f *Facts) { f.Host.Release = "m1" }), state: metal3.StateProvisioned,
			error: metal3.ProvisionedRegistrationError, message: "SameServer: ", check: says("besides, MachineGone: ", "its release waits until no other host is this server")},
		{name: "an installation was never requested", facts: facts(metal3.StateAvailable, off).claimed().with(gone).with(func(f *Facts) { f.Host.HasImage, f.Host.Online = false, false }),
			state: metal3.StateAvailable, error: metal3.ProvisionedRegistrationError, message: message, check: says("ingot.dev/release=m1")},
		{name: "an earlier claim's report", facts: provisioned.with(func(f *Facts) { f.Spec.MachineGone = &v1alpha1.MachineGone{UID: "m0"} }), state: metal3.StateProvisioned},
		{name: "a host without a claim", facts: facts(metal3.StateAvailable, off).with(gone), state: metal3.StateAvailable},
	})
}

func TestAMachineThatIsGoneIsOneEvent(t *testing.T) {
	f := facts(metal3.StateProvisioned, on).claimed().installed().with(gone)
	for i, want := range []int{1, 0, 0} {
		d := Plan(f)
		if len(d.Events) != want || want > 0 && d.Events[0].Reason != v1alpha1.ReasonMachineGone {
			t.Errorf("reconcile %d: %+v", i, d.Events)
		}
		f.Record, f.Host.Status, f.Now = d.Record, d.Status, f.Now.Add(time.Minute)
	}
	// The grace period of a BMC keeps the error that was there, and adds nothing to it again and again.
	for range 3 {
		d := Plan(f.with(broken("BMCUnreachable")))
		if n := strings.Count(d.Status.ErrorMessage, v1alpha1.ReasonMachineGone); n != 1 {
			t.Errorf("%d times in %q", n, d.Status.ErrorMessage)
		}
		f.Record, f.Host.Status, f.Now = d.Record, d.Status, f.Now.Add(time.Second)
	}
}

func TestAnEraseSaysWhichNodeMayRemain(t *testing.T) {
	f := facts(metal3.StateDeprovisioning, off).claimed().installed().with(func(f *Facts) {
		f.Host.HasImage, f.Host.Online = false, false
		f.Spec.NodeRemains = &v1alpha1.RemainingNode{Name: "a", TokenID: "abcdef"}
	})
	d := Plan(f)
	i := slices.IndexFunc(d.Events, func(e event.Event) bool { return e.Reason == v1alpha1.ReasonNodeRemains })
	if d.Record.Wanted == nil || d.Record.Wanted.Operation != string(hardware.OpErase) || i < 0 || d.Action.Kind != ActionNone {
		t.Fatalf("before the server is powered on for its erase: %+v, events %+v", d.Record.Wanted, d.Events)
	}
	for _, part := range []string{"Node a may remain in TenantCluster team/research", "kubectl delete node a", "Secret bootstrap-token-abcdef"} {
		if !strings.Contains(d.Events[i].Message, part) {
			t.Errorf("%q does not say %q", d.Events[i].Message, part)
		}
	}
}

// A released server is on for its erase only. One that never asks for its boot document is powered off before anything else is tried, because it
// may have booted the former tenant's system.
func TestAServerThatDoesNotBootForItsEraseIsPoweredOffAgain(t *testing.T) {
	released := func(f *Facts) { f.Host.HasImage, f.Host.Online = false, false }
	failure := func(power hardware.PowerState) Facts {
		return facts(metal3.StateDeprovisioning, power).claimed().installed().with(released).attempted(2, hardware.OpErase, failed, hardware.ReasonNoBootRequest)
	}
	const message = "NoBootRequest: attempt 2 failed at Writing: seen"
	checkDecisions(t, []decisionCase{
		{name: "it is on", facts: failure(on), state: metal3.StateDeprovisioning, action: ActionSetPower, error: metal3.ProvisioningError, message: message, check: func(t *testing.T, d Decision) {
			if d.Action.Power.Desired != hardware.PowerOff || d.Action.Power.Graceful {
				t.Errorf("the power that is requested: %+v", d.Action.Power)
			}
		}},
		{name: "it is off", facts: failure(off), state: metal3.StateDeprovisioning, error: metal3.ProvisioningError, message: message},
		{name: "its last try has failed too", facts: failure(on).ended(3).with(later(time.Hour)), state: metal3.StateDeprovisioning, action: ActionSetPower, error: metal3.ProvisioningError, message: message},
	})
}
