package nodequota

import (
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// TestANodeTypeThatIsNotThereIsNamed limits a NodeType that is created later.
func TestANodeTypeThatIsNotThereIsNamed(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	server.Run(t, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: recorder, Clock: testingclock.NewFakePassiveClock(time.Now())}).SetupWithManager(mgr)
	})
	namespace := server.Namespace(t)
	limits := &v1alpha1.NodeQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.NodeQuotaName}, Spec: v1alpha1.NodeQuotaSpec{
		Machines: []v1alpha1.NodeTypeLimit{{NodeType: namespace, Limit: 2}},
	}}
	server.Create(t, limits)
	awaitNodeTypesKnown := func(reason string) *metav1.Condition {
		t.Helper()
		var found *metav1.Condition
		management.Eventually(t, "the condition has the reason "+reason, func() bool {
			if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(limits), limits); err != nil {
				t.Fatal(err)
			}
			found = meta.FindStatusCondition(limits.Status.Conditions, v1alpha1.ConditionNodeTypesKnown)
			return found != nil && found.Reason == reason
		})
		return found
	}
	c := awaitNodeTypesKnown(v1alpha1.ReasonNodeTypeUnknown)
	if c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, "there is no NodeType "+namespace+", so that its limit limits nothing: ") {
		t.Errorf("%+v", c)
	}
	management.Eventually(t, "an event warns", func() bool {
		return strings.HasPrefix(<-recorder.Events, "Warning NodeTypeUnknown there is no NodeType "+namespace)
	})
	server.Create(t, &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: "hall-1"}, OSImageRef: v1alpha1.LocalReference{Name: "debian"},
		HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}},
	}})
	if c := awaitNodeTypesKnown(v1alpha1.ReasonNodeTypesKnown); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
}
