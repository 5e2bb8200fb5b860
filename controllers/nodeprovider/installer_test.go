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
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestANodeProviderSaysWhetherItsIronicAnswers(t *testing.T) {
	namespace := server.Namespace(t)
	server.Create(t, &v1alpha1.NodeProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "installer-1"},
		Spec:       v1alpha1.NodeProviderSpec{HostNamespace: namespace, Ironic: &v1alpha1.IronicProvider{Endpoint: "https://ironic.example.com"}},
	})
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
	namespace := server.Namespace(t)
	server.Create(t, &v1alpha1.NodeProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "installer-2"},
		Spec:       v1alpha1.NodeProviderSpec{HostNamespace: namespace, Ironic: &v1alpha1.IronicProvider{Endpoint: "https://ironic.example.com"}},
	})
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
		server.Create(t, &v1alpha1.NodeProvider{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.NodeProviderSpec{HostNamespace: namespace, Ironic: &v1alpha1.IronicProvider{
				Endpoint: "https://" + name + ".example.com", CredentialsSecretRef: &v1alpha1.LocalReference{Name: "rack-1-bmc"},
			}},
		})
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(asked, []string{"installer-first"}) {
		t.Errorf("asked for %v", asked)
	}
}
