package nodeprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func ironicProvider(name, namespace, endpoint string) *v1alpha1.NodeProvider {
	return &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: namespace, Ironic: &v1alpha1.IronicProvider{Endpoint: endpoint},
	}}
}

func TestANodeProviderSaysWhetherItsIronicAnswers(t *testing.T) {
	server.Create(t, ironicProvider("installer-1", server.Namespace(t), "https://ironic.example.com"))
	refused := hardware.Errorf(hardware.Unauthorized, "use Ironic", "", "no such login")
	refused.Reason = hardware.ReasonInstallerUnauthorized
	var answer string
	var failure error
	asked := 0
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	r := &Reconciler{
		Client: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock,
		CheckInstaller: func(context.Context, *v1alpha1.NodeProvider) (string, error) { asked++; return answer, failure },
	}
	for _, c := range []struct {
		answer  string
		failure error
		status  metav1.ConditionStatus
		reason  string
	}{
		{"", refused, metav1.ConditionFalse, "InstallerUnauthorized"},
		{"it answers", nil, metav1.ConditionTrue, v1alpha1.ReasonInstallerAnswers},
		{"", errors.New("an error of no kind"), metav1.ConditionFalse, v1alpha1.ReasonInstallerUnreachable},
	} {
		answer, failure, asked = c.answer, c.failure, 0
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "installer-1"}})
		if err != nil || result.RequeueAfter != time.Minute {
			t.Fatalf("again after %s, %v", result.RequeueAfter, err)
		}
		var stored v1alpha1.NodeProvider
		if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "installer-1"}, &stored); err != nil {
			t.Fatal(err)
		}
		want := c.answer
		if c.failure != nil {
			want = c.failure.Error()
		}
		if got := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionInstallerReachable); got == nil || got.Status != c.status || got.Reason != c.reason || got.Message != want {
			t.Errorf("expected %s %s %q, seen %+v", c.status, c.reason, want, got)
		}
		if !meta.IsStatusConditionTrue(stored.Status.Conditions, v1alpha1.ConditionReady) {
			t.Errorf("Ready is of the namespace alone: %+v", stored.Status.Conditions)
		}
		// A new host starts a reconcile.
		if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "installer-1"}}); err != nil || asked != 1 || result.RequeueAfter != time.Minute {
			t.Errorf("asked %d times before it was due, again after %s, %v", asked, result.RequeueAfter, err)
		}
		clock.SetTime(clock.Now().Add(time.Minute))
	}
}

func TestAFailureThatDiffersInItsTimesAloneIsWrittenOnce(t *testing.T) {
	server.Create(t, ironicProvider("installer-2", server.Namespace(t), "https://ironic.example.com"))
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	r := &Reconciler{
		Client: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock,
		CheckInstaller: func(context.Context, *v1alpha1.NodeProvider) (string, error) {
			return "", fmt.Errorf("the certificate has ended: current time %s is after 2026-11-01T00:00:00Z", clock.Now().Format(time.RFC3339))
		},
	}
	version := ""
	for range 3 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "installer-2"}}); err != nil {
			t.Fatal(err)
		}
		var stored v1alpha1.NodeProvider
		if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "installer-2"}, &stored); err != nil {
			t.Fatal(err)
		}
		if version != "" && stored.ResourceVersion != version {
			t.Errorf("it was written again: %+v", stored.Status.Conditions)
		}
		version = stored.ResourceVersion
		clock.SetTime(clock.Now().Add(time.Minute))
	}
}

func TestAnAnswerIsNotLostWithTheWriteOfIt(t *testing.T) {
	provider := ironicProvider("installer-3", server.Namespace(t), "https://10.0.0.5:6385")
	server.Create(t, provider)
	key := client.ObjectKeyFromObject(provider)
	asked := 0
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	r := &Reconciler{
		Client: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock,
		CheckInstaller: func(_ context.Context, of *v1alpha1.NodeProvider) (string, error) {
			asked++
			// Somebody writes it while Ironic is asked, as the controller that adds its finalizer does.
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"asked":"%d"}}}`, asked))
			if err := server.Client.Patch(t.Context(), provider.DeepCopy(), patch); err != nil {
				t.Error(err)
			}
			return "", fmt.Errorf("%s does not answer", of.Spec.Ironic.Endpoint)
		},
	}
	reconcile := func(endpoint string, times int) {
		t.Helper()
		for range 2 { // the first write is refused
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
		}
		var stored v1alpha1.NodeProvider
		if err := server.Client.Get(t.Context(), key, &stored); err != nil {
			t.Fatal(err)
		}
		if got := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionInstallerReachable); got == nil || got.Message != endpoint+" does not answer" || asked != times {
			t.Errorf("asked %d times, and the condition is %+v", asked, got)
		}
	}
	reconcile("https://10.0.0.5:6385", 1)
	if err := server.Client.Patch(t.Context(), provider.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ironic":{"endpoint":"https://10.0.0.6:6385"}}}`))); err != nil {
		t.Fatal(err)
	}
	reconcile("https://10.0.0.6:6385", 2)
	// One that is deleted and kept for its Machines is asked for as before.
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+v1alpha1.InUseFinalizer+`"]}}`))
	if err := errors.Join(server.Client.Patch(t.Context(), provider.DeepCopy(), patch), server.Client.Delete(t.Context(), provider.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	reconcile("https://10.0.0.6:6385", 3)
}

func TestNothingIsAskedForANodeProviderWhoseHostNamespaceIsAnothers(t *testing.T) {
	namespace := server.Namespace(t)
	asked := []string{}
	r := &Reconciler{
		Client: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)),
		CheckInstaller: func(_ context.Context, provider *v1alpha1.NodeProvider) (string, error) {
			asked = append(asked, provider.Name)
			return "it answers", nil
		},
	}
	for _, name := range []string{"installer-first", "installer-thief"} {
		provider := ironicProvider(name, namespace, "https://"+name+".example.com")
		provider.Spec.Ironic.CredentialsSecretRef = &v1alpha1.LocalReference{Name: "rack-1-bmc"}
		server.Create(t, provider)
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(asked, []string{"installer-first"}) {
		t.Errorf("asked for %v", asked)
	}
}
