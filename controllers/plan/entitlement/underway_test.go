package entitlement

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestARollIsNoFault(t *testing.T) {
	of := func(phases ...v1alpha1.MachinePhase) []v1alpha1.Machine {
		var out []v1alpha1.Machine
		for _, phase := range phases {
			out = append(out, v1alpha1.Machine{Spec: v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: "a100"}}, Status: v1alpha1.MachineStatus{Phase: phase}})
		}
		return out
	}
	const ready, drains, installs, joins, validates = v1alpha1.MachineReady, v1alpha1.MachineDraining, v1alpha1.MachineProvisioning, v1alpha1.MachineJoining, v1alpha1.MachineValidating
	for _, c := range []struct {
		name         string
		found        Found
		machines     []v1alpha1.Machine
		reason, says string
	}{
		{"all are being installed", Found{}, of(installs, installs, joins), v1alpha1.ReasonNodesUnderWay, "3 of 3 Machines of NodeType a100 are being installed or rolled (2 Provisioning, 1 Joining)"},
		{"the only one is drained", Found{Gated: 8}, of(drains, v1alpha1.MachinePending), v1alpha1.ReasonNodesUnderWay, "8 devices match, and all are of nodes that are not admitted: 1 of 2 Machines"},
		{"one of two is rolled", Found{Admitted: 8}, of(ready, installs), v1alpha1.ReasonDevicesAvailable, "8 devices of admitted nodes match"},
		{"there is none", Found{}, nil, v1alpha1.ReasonSelectsNothing, "are nodes of NodeType a100 there"},
		{"its driver publishes nothing", Found{}, of(ready), v1alpha1.ReasonSelectsNothing, "does their driver publish"},
		{"it does not pass", Found{Gated: 8}, of(validates), v1alpha1.ReasonNodesNotAdmitted, "ingot machines says why"},
	} {
		class := Class{EntitledClass: v1alpha1.EntitledClass{Name: "a", NodeTypeRef: v1alpha1.LocalReference{Name: "a100"}}, DeviceClass: "t-a"}
		known := Known{Seen: map[string]Seen{"t-a": {Found: c.found}}, UnderWay: UnderWay(c.machines)}
		rows := Report(&v1alpha1.Entitlement{}, []Class{class}, 1, known, metav1.Now())
		if got := meta.FindStatusCondition(rows[0].Conditions, v1alpha1.ConditionAvailable); got.Reason != c.reason || !strings.Contains(got.Message, c.says) {
			t.Errorf("%s: %s: %s", c.name, got.Reason, got.Message)
		}
	}
}
