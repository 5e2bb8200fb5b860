package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestUpdatesThatEnqueueARollout(t *testing.T) {
	nodeType := func(change func(*v1alpha1.NodeTypeStatus)) *v1alpha1.NodeType {
		status := v1alpha1.NodeTypeStatus{
			StableRevision: "h100-a", StableRendering: "h100-a-1", TargetRevision: "h100-a", TargetRendering: "h100-a-1",
			Conditions: condition(metav1.ConditionTrue, v1alpha1.ReasonReady),
		}
		change(&status)
		return &v1alpha1.NodeType{Status: status}
	}
	machine := func(change func(*v1alpha1.MachineStatus)) *v1alpha1.Machine {
		status := v1alpha1.MachineStatus{Phase: v1alpha1.MachineReady, Revision: "h100-a", Rendering: "h100-a-1"}
		change(&status)
		return &v1alpha1.Machine{Status: status}
	}
	inUse := func(devices int32) *v1alpha1.Rollout {
		return &v1alpha1.Rollout{Status: v1alpha1.RolloutStatus{InUse: []v1alpha1.DevicesInUse{{Machine: "research/a", DeviceClass: "legal-h100", Devices: devices}}}}
	}
	sameNodeType, sameMachine := nodeType(func(*v1alpha1.NodeTypeStatus) {}), machine(func(*v1alpha1.MachineStatus) {})
	for name, c := range map[string]struct {
		predicate     predicate.Predicate
		before, after client.Object
		want          bool
	}{
		"the NodeType counts another host": {nodeTypeChanged, sameNodeType, nodeType(func(s *v1alpha1.NodeTypeStatus) { s.Hosts.Matching++ }), false},
		"another target revision":          {nodeTypeChanged, sameNodeType, nodeType(func(s *v1alpha1.NodeTypeStatus) { s.TargetRevision = "h100-b" }), true},
		"another target rendering":         {nodeTypeChanged, sameNodeType, nodeType(func(s *v1alpha1.NodeTypeStatus) { s.TargetRendering = "h100-a-2" }), true},
		"another stable revision":          {nodeTypeChanged, sameNodeType, nodeType(func(s *v1alpha1.NodeTypeStatus) { s.StableRevision = "h100-b" }), true},
		"another stable rendering":         {nodeTypeChanged, sameNodeType, nodeType(func(s *v1alpha1.NodeTypeStatus) { s.StableRendering = "h100-a-2" }), true},
		"the NodeType is no longer Ready": {nodeTypeChanged, sameNodeType, nodeType(func(s *v1alpha1.NodeTypeStatus) {
			s.Conditions = condition(metav1.ConditionFalse, v1alpha1.ReasonOSImageNotFound)
		}), true},
		"the Machine's installation progresses": {machineChanged, sameMachine, machine(func(s *v1alpha1.MachineStatus) { s.Progress = &v1alpha1.Progress{DoneBytes: 1} }), false},
		"another revision is installed":         {machineChanged, sameMachine, machine(func(s *v1alpha1.MachineStatus) { s.Revision = "h100-b" }), true},
		"other devices are in use":              {inUseChanged, inUse(1), inUse(2), true},
		"the same devices are in use":           {inUseChanged, inUse(1), inUse(1), false},
		"another rendering is installed":        {machineChanged, sameMachine, machine(func(s *v1alpha1.MachineStatus) { s.Rendering = "h100-a-2" }), true},
	} {
		if got := c.predicate.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
