package machine_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

func TestAJoinThatIsEditedToOneThatIsRefusedStopsNewNodesAndNoDrain(t *testing.T) {
	r, next := readyRig(t)
	ctx, name := t.Context(), r.namespace
	before := r.node(name)
	tenant := &v1alpha1.TenantCluster{}
	if err := server.Client.Get(ctx, r.tenant, tenant); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(tenant.DeepCopy())
	tenant.Spec.Join = v1alpha1.JoinSpec{Kubeadm: &v1alpha1.EndpointJoin{Endpoint: "https://platform.example.com/kubernetes/a"}}
	if err := server.Client.Patch(ctx, tenant, patch); err != nil {
		t.Fatal(err)
	}
	r.want(name, next)
	management.Eventually(t, "the roll names the field, and does not begin", func() bool {
		c := r.condition(name, v1alpha1.ConditionUpToDate)
		return c.Reason == v1alpha1.ReasonWaitingForTenant && strings.Contains(c.Message, "spec.join.kubeadm.endpoint")
	})
	r.addMachine("later")
	management.Eventually(t, "a new Machine names the field, and claims nothing", func() bool {
		c := r.condition("later", v1alpha1.ConditionClaimed)
		return c.Reason == v1alpha1.ReasonWaitingForTenant && strings.Contains(c.Message, "spec.join.kubeadm.endpoint")
	})
	m, after := r.machine(name), r.node(name)
	if m.Status.Phase != v1alpha1.MachineReady || after.UID != before.UID || after.Spec.Unschedulable {
		t.Fatalf("the node that had joined is %s, cordoned: %t", m.Status.Phase, after.Spec.Unschedulable)
	}
	if c := r.condition(name, v1alpha1.ConditionReady); c.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %s: %s", c.Status, c.Message)
	}
	server.Create(t, &corev1.Pod{ObjectMeta: r.meta("tenants-own"), Spec: corev1.PodSpec{
		NodeName: name, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
	}})
	r.release(name) // evicts, powers off and deletes the Node
}
