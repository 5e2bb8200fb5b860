package rollout

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

func TestAMachineThatIsPoweredOffIsNotRolledAndIsUnavailable(t *testing.T) {
	off := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "a"}, Spec: v1alpha1.MachineSpec{
		PowerOff: true, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
	}}
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
