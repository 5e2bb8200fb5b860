package lifecycle

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// isTwice gives the host another one that is the same server.
func isTwice(f *Facts) {
	f.Host.Error, f.Host.ErrorReason = "provisioned registration error", v1alpha1.ReasonSameServer
}

// sameServerSituations are those of testdata/decisions.txt about a server that two hosts have.
var sameServerSituations = []situation{
	{"a server that two hosts have, and a roll", v1alpha1.MachineReady, func(f *Facts) { isTwice(f); f.NextRevision = revisionOf("rev-2") }},
	{"a server that two hosts have, and a power-off that spec asks for", v1alpha1.MachineReady, func(f *Facts) { isTwice(f); f.Machine.Spec.PowerOff = true }},
	{"a server that two hosts have, in a roll", v1alpha1.MachineDraining, func(f *Facts) { isTwice(f); f.Node.Unschedulable, f.Node.Pods = true, []string{"team/a"} }},
	{"a server that two hosts have, in a roll without pods", v1alpha1.MachineDraining, func(f *Facts) { isTwice(f); f.Node.Unschedulable = true }},
	{"a server that two hosts have, in a power-off", v1alpha1.MachineDraining, func(f *Facts) {
		isTwice(f)
		f.Machine.Spec.PowerOff, f.Node.Unschedulable, f.NextRevision = true, true, Revision{}
	}},
	{"a server that two hosts have, to be powered on again", v1alpha1.MachineValidating, func(f *Facts) {
		isTwice(f)
		f.Host.Online, f.Machine.Status.PowerOff = false, &v1alpha1.MachinePowerOff{}
	}},
	{"a server that two hosts have, to be installed", v1alpha1.MachineProvisioning, isTwice},
	{"a server that two hosts have, in a release", v1alpha1.MachineReleasing, isTwice},
	{"a server that two hosts have, in a release that had begun", v1alpha1.MachineReleasing, func(f *Facts) {
		isTwice(f)
		now := metav1.NewMicroTime(f.Now)
		f.Node.Unschedulable, f.Machine.Status.PowerOffRequestedAt = true, &now
	}},
}

func TestNothingIsDoneWithAServerThatTwoHostsHave(t *testing.T) {
	for _, s := range sameServerSituations {
		f := factsIn(t, s.phase)
		s.change(&f)
		if d := Plan(f); d.Action != nil && d.Action.Kind != RenewToken {
			t.Errorf("%s, %s: action %s", s.phase, s.name, d.Action.Kind)
		}
		f.Host.Error, f.Host.ErrorReason = "", ""
		if d := Plan(f); d.Action == nil && !d.Requeue {
			t.Errorf("%s, %s: nothing is done after the conflict either", s.phase, s.name)
		}
	}
}
