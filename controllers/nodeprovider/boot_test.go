package nodeprovider

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAWrongBootAddressIsNoticedFromOutside(t *testing.T) {
	namespace := server.Namespace(t)
	server.Create(t, provider("boot-1", namespace))
	asked, answer := []string{}, error(nil)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	r := &Reconciler{Client: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock, CheckBoot: func(_ context.Context, boot v1alpha1.NetbootSpec) error {
		address := boot.Address
		asked = append(asked, address)
		return answer
	}}
	reconcile := func() (metav1.Condition, time.Duration) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "boot-1"}})
		if err != nil {
			t.Fatal(err)
		}
		var stored v1alpha1.NodeProvider
		if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "boot-1"}, &stored); err != nil {
			t.Fatal(err)
		}
		if ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
			t.Fatalf("Ready is of the namespace alone: %+v", ready)
		}
		return *meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionBootServiceReachable), result.RequeueAfter
	}
	for _, c := range []struct {
		name   string
		answer error
		status metav1.ConditionStatus
		reason string
		pause  time.Duration
	}{
		{"the boot service", nil, metav1.ConditionTrue, v1alpha1.ReasonBootServiceAnswers, 10 * time.Minute},
		{"something else", hardware.Errorf(hardware.Conflict, "ask", "x", "no boot service"), metav1.ConditionFalse, v1alpha1.ReasonBootAddressWrong, time.Minute},
		{"nothing", hardware.Errorf(hardware.Unreachable, "ask", "x", "no route"), metav1.ConditionUnknown, v1alpha1.ReasonBootServiceUnconfirmed, time.Minute},
		{"an error of no kind", errors.New("?"), metav1.ConditionUnknown, v1alpha1.ReasonBootServiceUnconfirmed, time.Minute},
	} {
		answer, asked = c.answer, nil
		got, pause := reconcile()
		if got.Status != c.status || got.Reason != c.reason || pause != c.pause || len(asked) != 1 {
			t.Errorf("%s: %s %s, again after %s, asked %v", c.name, got.Status, got.Reason, pause, asked)
		}
		if reconcile(); len(asked) != 1 {
			t.Errorf("%s: asked again before it is due", c.name)
		}
		clock.SetTime(clock.Now().Add(c.pause))
	}
	// A corrected address is asked at once.
	reconcile()
	asked = nil
	if err := server.Client.Patch(t.Context(), provider("boot-1", namespace), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"redfish":{"netboot":{"address":"10.20.0.3"}}}}`))); err != nil {
		t.Fatal(err)
	}
	if reconcile(); len(asked) != 1 || asked[0] != "10.20.0.3" {
		t.Errorf("asked %v", asked)
	}
}

func TestTheBootAddressOfAKeptNodeProviderIsAskedAsBefore(t *testing.T) {
	kept := provider("boot-kept", server.Namespace(t))
	kept.Finalizers = []string{v1alpha1.InUseFinalizer}
	server.Create(t, kept)
	answer := error(hardware.Errorf(hardware.Conflict, "ask", "x", "no boot service"))
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	r := &Reconciler{Client: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock, CheckBoot: func(context.Context, v1alpha1.NetbootSpec) error { return answer }}
	reconcile := func(status metav1.ConditionStatus) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(kept)})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
			t.Fatal(err)
		}
		if !meta.IsStatusConditionPresentAndEqual(kept.Status.Conditions, v1alpha1.ConditionBootServiceReachable, status) || result.RequeueAfter <= 0 {
			t.Errorf("want BootServiceReachable %s: %+v, again after %s", status, kept.Status.Conditions, result.RequeueAfter)
		}
	}
	reconcile(metav1.ConditionFalse)
	if err := server.Client.Delete(t.Context(), kept.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	answer = nil
	clock.SetTime(clock.Now().Add(time.Minute))
	// The controller inuse says why it is kept.
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&kept.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInUse})
	if err := server.Client.Status().Update(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	reconcile(metav1.ConditionTrue)
	if ready := meta.FindStatusCondition(kept.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != v1alpha1.ReasonInUse {
		t.Errorf("Ready: %+v", ready)
	}
}
