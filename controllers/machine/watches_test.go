package machine

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
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
	revision := func(generation int64, users int32) *v1alpha1.NodeTypeRevision {
		return &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Status: v1alpha1.NodeTypeRevisionStatus{UsedBy: &v1alpha1.UsedBy{Count: users}}}
	}
	for sentence, c := range map[string]struct {
		which         predicate.Predicate
		before, after client.Object
		want          bool
	}{
		"a NodeType counts another host":     {nodeTypeChanged, nodeType(1, "DriverMissing"), nodeType(2, "DriverMissing"), false},
		"a NodeType lacks something else":    {nodeTypeChanged, nodeType(1, "DriverMissing"), nodeType(1, "OSImageNotFound"), true},
		"another Machine uses a revision":    {revisionChanged, revision(1, 1), revision(1, 2), false},
		"a revision is being deleted":        {revisionChanged, revision(1, 1), revision(2, 1), true},
		"a few more bytes are on the disk":   {hostRecordChanged, record("Writing", 10), record("Writing", 390), false},
		"half of the image is on the disk":   {hostRecordChanged, record("Writing", 390), record("Writing", 400), true},
		"the installation is a step further": {hostRecordChanged, record("Writing", 800), record("Verifying", 800), true},
	} {
		if got := c.which.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: %v, want %v", sentence, got, c.want)
		}
	}
}

func TestMachinesGoFirstWhileTheirServersAreNeeded(t *testing.T) {
	for phase, want := range map[v1alpha1.MachinePhase]bool{
		"": true, v1alpha1.MachinePending: true, v1alpha1.MachineClaiming: true, v1alpha1.MachineProvisioning: true, v1alpha1.MachineDraining: true, v1alpha1.MachineReleasing: true,
		v1alpha1.MachineJoining: false, v1alpha1.MachineValidating: false, v1alpha1.MachineReady: false,
	} {
		if got := isServerAwaited(phase); got != want {
			t.Errorf("%s: %v", phase, got)
		}
	}
}

// A disruption budget that cannot be listed appears in the message with the error, because a person then looks at the tenant's RBAC.
func TestBudgetsThatCannotBeListedAreNamedWithTheError(t *testing.T) {
	tenant := fake.NewClientset()
	tenant.PrependReactor("list", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "b"}}}
	got := blockingBudgets(context.Background(), tenant, pods)
	if want := []string{"of namespace jobs (cannot be listed: forbidden)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
