package nodeprovider

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
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
	r := &Reconciler{
		Client: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock.RealClock{},
		CheckInstaller: func(context.Context, *v1alpha1.NodeProvider) (string, error) { return answer, failure },
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
		answer, failure = c.answer, c.failure
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
	}
}
