package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

func TestAMachineThatIsPoweredOffIsNotRolledAndIsUnavailable(t *testing.T) {
	off := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "a"}, Spec: v1alpha1.MachineSpec{
		PowerOff: true, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
	}}
	off.Status.Phase = v1alpha1.MachinePending
	on := off.DeepCopy()
	on.Name, on.Spec.PowerOff = "b", false
	ready := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	f := facts(observation{
		rollout: &v1alpha1.Rollout{}, nodeType: &v1alpha1.NodeType{Status: v1alpha1.NodeTypeStatus{Conditions: ready}},
		machines: []*v1alpha1.Machine{off, on}, tenants: map[types.NamespacedName]bool{{Namespace: "research", Name: "research"}: true},
	}, false, watched.Clock{Now: time.Unix(0, 0)})
	if got := f.Machines[0].BlockedBy; !strings.Contains(got, "research/a is powered off") || f.Machines[0].Ready {
		t.Errorf("a is blocked by %q, Ready %t", got, f.Machines[0].Ready)
	}
	if got := f.Machines[1].BlockedBy; got != "" {
		t.Errorf("b is blocked by %q", got)
	}
}

// TestAMachineWhoseHostIsNotKnownIsNotRolled: after a restore no Machine has its host back yet, and all of them together would count as Machines without a host,
// which need no canary and no budget.
func TestAMachineWhoseHostIsNotKnownIsNotRolled(t *testing.T) {
	waiting := []metav1.Condition{{Type: v1alpha1.ConditionClaimed, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRestoreWaiting}}
	obs := observation{rollout: &v1alpha1.Rollout{}, nodeType: &v1alpha1.NodeType{Status: v1alpha1.NodeTypeStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}}},
		tenants: map[types.NamespacedName]bool{{Namespace: "research", Name: "research"}: true}}
	obs.rollout.Name, obs.rollout.Spec.From, obs.rollout.Spec.To = "r", "v1", "v2"
	for i := range 20 {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: fmt.Sprint("m", i)}, Spec: v1alpha1.MachineSpec{Revision: "v1", TenantClusterRef: v1alpha1.LocalReference{Name: "research"}}}
		if i%2 == 0 {
			m.Status = v1alpha1.MachineStatus{Phase: v1alpha1.MachinePending, Conditions: waiting}
		}
		obs.machines = append(obs.machines, m)
	}
	f := facts(obs, false, watched.Clock{Now: time.Unix(0, 0)})
	for range 20 {
		d := plan.Plan(f)
		if len(d.Start) > 0 || d.Done {
			t.Fatalf("%v is started, done %t, in the phase %s", d.Start, d.Done, d.Status.Phase)
		}
		f.Rollout.Status = d.Status
	}
	if got := f.Machines[1].BlockedBy; !strings.Contains(got, "not known yet whether it has a host") {
		t.Errorf("blocked by %q", got)
	}
}
