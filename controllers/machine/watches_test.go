package machine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestCountsAndBytesConcernNoMachineAndReasonsDo(t *testing.T) {
	nodeType := func(hosts int32, reason string) *v1alpha1.NodeType {
		return &v1alpha1.NodeType{Status: v1alpha1.NodeTypeStatus{Hosts: v1alpha1.HostCounts{Matching: hosts}, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason,
		}}}}
	}
	record := func(step string, bytes int64) *v1alpha1.HostRecord {
		return &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Attempt: &v1alpha1.HostAttempt{State: "Running", Step: step, DoneBytes: bytes, TotalBytes: 800}}}
	}
	for sentence, c := range map[string]struct {
		which         predicate.Predicate
		before, after client.Object
		want          bool
	}{
		"a NodeType counts another host":     {nodeTypeChanged, nodeType(1, "DriverMissing"), nodeType(2, "DriverMissing"), false},
		"a NodeType lacks something else":    {nodeTypeChanged, nodeType(1, "DriverMissing"), nodeType(1, "OSImageNotFound"), true},
		"a few more bytes are on the disk":   {hostRecordChanged, record("Writing", 10), record("Writing", 190), false},
		"another quarter is on the disk":     {hostRecordChanged, record("Writing", 10), record("Writing", 210), true},
		"the installation is a step further": {hostRecordChanged, record("Writing", 800), record("Verifying", 800), true},
	} {
		if got := c.which.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: %v, want %v", sentence, got, c.want)
		}
	}
}
