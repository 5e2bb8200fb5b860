package step

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func TestEveryOutcomeIsMappedInOnePlace(t *testing.T) {
	broken := errors.New("broken")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "machines"}, "m", errors.New("changed"))
	for _, c := range []struct {
		name    string
		outcome Outcome
		after   time.Duration
		err     error
		text    string
	}{
		{"done does nothing more", Done(), 0, nil, "done"},
		{"wait looks again after its time", Wait("for the disk", time.Minute), time.Minute, nil, "wait 1m0s: for the disk"},
		{"wait until a moment that has passed looks again soon, not never", Wait("deadline", -time.Second), time.Second, nil, "wait 1s: deadline"},
		{"retry is an error with back-off", Retry(broken), 0, broken, "retry: broken"},
		{"retry without an error is done", Retry(nil), 0, nil, "done"},
		{"a lost lock is no error", Retry(fmt.Errorf("claim: %w", conflict)), conflictPause, nil, "retry: claim: " + conflict.Error()},
		{"two lost locks are no error", Retry(errors.Join(conflict, conflict)), conflictPause, nil, ""},
		{"an error beside a lost lock is seen", Retry(errors.Join(conflict, broken)), 0, broken, ""},
		{"stuck does not try again", Stuck("no such image"), 0, nil, "stuck: no such image"},
	} {
		result, err := c.outcome.Result()
		if result != (reconcile.Result{RequeueAfter: c.after}) || !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: result %+v, error %v", c.name, result, err)
		}
		if c.text != "" && c.outcome.String() != c.text {
			t.Errorf("%s: says %q, want %q", c.name, c.outcome, c.text)
		}
	}
}

func newPool(t *testing.T) *v1alpha1.NodePool {
	t.Helper()
	pool := &v1alpha1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "training", Namespace: server.Namespace(t)},
		Spec: v1alpha1.NodePoolSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
		},
	}
	server.Create(t, pool)
	return pool
}

func scaling(pool *v1alpha1.NodePool, message string) *v1alpha1.NodePool {
	after := pool.DeepCopy()
	SetCondition(&after.Status.Conditions, after.Generation, start, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonScaling, message)
	return after
}

func TestFinishWritesTheStatusThenTellsTheEvent(t *testing.T) {
	pool, recorder := newPool(t), events.NewFakeRecorder(4)
	after := scaling(pool, "1 of 2")
	after.Labels = map[string]string{"not": "status"}
	told := []event.Event{{Type: corev1.EventTypeNormal, Reason: v1alpha1.ReasonScaling, Action: "Scale", Message: "100% of\n\x1b" + strings.Repeat("é", 600)}}
	result, err := Finish(t.Context(), Writer{server.Client, NewRecorder(recorder)}, pool, after, told, Wait("Machines", time.Minute))
	if err != nil || result.RequeueAfter != time.Minute {
		t.Fatalf("result %+v, error %v", result, err)
	}
	event := <-recorder.Events
	if !strings.HasPrefix(event, "Normal Scaling 100% of ?é") || !strings.HasSuffix(event, "é...") || len(event) > len("Normal Scaling ")+MaxNote {
		t.Errorf("event %q", event)
	}
	var stored v1alpha1.NodePool
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), &stored); err != nil {
		t.Fatal(err)
	}
	if len(stored.Status.Conditions) != 1 || stored.Status.Conditions[0].Message != "1 of 2" || stored.Labels != nil {
		t.Errorf("stored %+v, labels %v", stored.Status, stored.Labels)
	}
	if result, err = Finish(t.Context(), Writer{server.Client, recorder}, &stored, scaling(&stored, "1 of 2"), nil, Done()); err != nil || !result.IsZero() {
		t.Errorf("result %+v, error %v", result, err)
	}
	var again v1alpha1.NodePool
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), &again); err != nil || again.ResourceVersion != stored.ResourceVersion {
		t.Errorf("an equal status was written: %v", err)
	}
}

func TestFinishTellsNoEventWhenSomebodyElseWroteFirst(t *testing.T) {
	pool, recorder := newPool(t), events.NewFakeRecorder(4)
	other := pool.DeepCopy()
	other.Status.Replicas = 7
	if err := server.Client.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	told := []event.Event{{Type: corev1.EventTypeNormal, Reason: v1alpha1.ReasonScaling, Message: "told too early"}}
	result, err := Finish(t.Context(), Writer{server.Client, recorder}, pool, scaling(pool, "stale"), told, Stuck("whatever"))
	if err != nil || result.RequeueAfter != conflictPause {
		t.Errorf("result %+v, error %v: a lost lock starts the reconcile over", result, err)
	}
	broken := errors.New("broken")
	if _, err := Finish(t.Context(), Writer{server.Client, recorder}, pool, scaling(pool, "stale"), told, Retry(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v: the outcome's own error is lost", err)
	}
	if len(recorder.Events) != 0 {
		t.Errorf("event %q of a status that was not written", <-recorder.Events)
	}
}

func TestFinishOfAnObjectThatIsGoneIsNoError(t *testing.T) {
	pool, recorder := newPool(t), events.NewFakeRecorder(4)
	if err := server.Client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if result, err := Finish(t.Context(), Writer{server.Client, recorder}, pool, scaling(pool, "late"), nil, Done()); err != nil || !result.IsZero() {
		t.Errorf("result %+v, error %v", result, err)
	}
}

func TestSetConditionKeepsTheTransitionTimeUnlessTheStatusChanges(t *testing.T) {
	var conditions []metav1.Condition
	set := func(after time.Duration, status metav1.ConditionStatus, message string) {
		SetCondition(&conditions, 1, start.Add(after), "Ready", status, "Because", message)
	}
	set(0, metav1.ConditionFalse, "a")
	set(time.Minute, metav1.ConditionFalse, "b")
	if !conditions[0].LastTransitionTime.Time.Equal(start) || conditions[0].Message != "b" {
		t.Errorf("condition %+v", conditions[0])
	}
	set(3*time.Minute, metav1.ConditionTrue, strings.Repeat("ü", 2000))
	if !conditions[0].LastTransitionTime.Time.Equal(start.Add(3*time.Minute)) || len(conditions[0].Message) > maxMessage || !strings.HasSuffix(conditions[0].Message, "ü...") {
		t.Errorf("condition %+v", conditions[0])
	}
}

func TestConditionEventsReturnsAnEventWhenStatusOrReasonChanges(t *testing.T) {
	at := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message}}
	}
	before := at(metav1.ConditionFalse, "Scaling", "1 of 2")
	if got := ConditionEvents(before, at(metav1.ConditionFalse, "Scaling", "2 of 3"), "Scale", "Ready"); got != nil {
		t.Errorf("a change of the message alone makes the events %+v", got)
	}
	if got := ConditionEvents(before, at(metav1.ConditionTrue, "Ready", "all"), "Scale", "Ready"); len(got) != 1 || got[0] != event.Normal("Ready", "Scale", "all") {
		t.Errorf("events %+v", got)
	}
	if got := ConditionEvents(nil, before, "Scale", "Ready", "Absent"); len(got) != 1 || got[0].Type != corev1.EventTypeWarning {
		t.Errorf("events %+v", got)
	}
}
