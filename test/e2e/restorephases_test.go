package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	// rolledType is the NodeType that is changed, and rolled its one Machine, which has the name of its server.
	rolledType, rolled = "rolled", "rolled"
	// heldMessage is what the API server says of a Machine that is to stay in Claiming.
	heldMessage = "this Machine stays in Claiming"
)

// orderRolled makes a copy of the NodeType, and the Machine that is rolled in each restore.
func (s *restoreCase) orderRolled(t *testing.T) {
	t.Helper()
	sample := &v1alpha1.NodeType{}
	if err := s.env.ManagementClient.Get(t.Context(), client.ObjectKey{Name: nodeType}, sample); err != nil {
		t.Fatal(err)
	}
	// The vendor's pods go to the nodes of the NodeTypes that they name.
	plugin := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "nvidia-device-plugin-daemonset"}}
	values := "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/values/-"
	change := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"add","path":%q,"value":%q}]`, values, rolledType))
	if err := s.env.TenantClient.Patch(t.Context(), plugin, change); err != nil {
		t.Fatal(err)
	}
	own := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: rolledType}, Spec: sample.Spec}
	one := intstr.FromInt32(1)
	own.Spec.Rollout = &v1alpha1.RolloutPolicy{MaxUnavailable: &one, Canary: &v1alpha1.CanarySpec{Machines: 1, Bake: &metav1.Duration{Duration: time.Second}}}
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: rolled},
		Spec: v1alpha1.MachineSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: rolledType}, TenantClusterRef: v1alpha1.LocalReference{Name: tenantName}, HostName: rolled,
		},
	}
	for _, o := range []client.Object{own, machine} {
		if err := s.env.ManagementClient.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// roll changes the NodeType, so that a Rollout begins, and returns when its Machine waits for a pod that no budget lets go.
func (s *restoreCase) roll(t *testing.T, run string) {
	t.Helper()
	labels := map[string]string{"app": "training-" + run}
	one := intstr.FromInt32(1)
	pod, budget := s.trainingOf(run)
	pod.Labels = labels
	pod.Spec = corev1.PodSpec{NodeName: rolled, Containers: []corev1.Container{{Name: "train", Image: "registry.example.com/train:v3"}}}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}}
	for _, o := range []client.Object{budget, pod} {
		if err := s.env.TenantClient.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"sshKeys":["ssh-ed25519 AAAA ops-%s"]}}`, run))
	if err := s.env.ManagementClient.Patch(t.Context(), &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: rolledType}}, change); err != nil {
		t.Fatal(err)
	}
	v := s.must(t, rolled, rolled, "emptied for its roll", isEmptied)
	if v.machine.Spec.Revision == v.machine.Status.Revision || v.machine.Labels[v1alpha1.LabelRollout] == "" {
		t.Fatalf("it is rolled to %q by Rollout %q", v.machine.Spec.Revision, v.machine.Labels[v1alpha1.LabelRollout])
	}
}

// trainingOf returns the pod that keeps the Machine from being rolled, and its budget.
func (s *restoreCase) trainingOf(run string) (*corev1.Pod, *policyv1.PodDisruptionBudget) {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "training-" + run}
	return &corev1.Pod{ObjectMeta: meta}, &policyv1.PodDisruptionBudget{ObjectMeta: meta}
}

// isEmptied: the Machine is rolled, and waits for a pod to leave.
func isEmptied(v observation) bool {
	return v.phase() == v1alpha1.MachineDraining && v.node != nil && v.node.Spec.Unschedulable && strings.Contains(v.condition(v1alpha1.ConditionReady).Message, "pod to leave")
}

// rollsOn waits until the Machine is emptied as it was, has not a write to its BMC, and then is rolled once.
func (s *restoreCase) rollsOn(t *testing.T, run string, before *v1alpha1.Machine, writes int64) {
	t.Helper()
	s.must(t, rolled, rolled, "emptied after the restore", isEmptied)
	pod, budget := s.trainingOf(run)
	was := before.Spec.Revision
	if err := s.env.TenantClient.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("its pod: %v, deleted %v", err, pod.DeletionTimestamp)
	}
	if now := s.env.Rack.Server(rolled).BMC().Writes(); now != writes {
		t.Errorf("the BMC of %s got %d writes while a pod runs there", rolled, now-writes)
	}
	if err := s.env.TenantClient.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	v := s.must(t, rolled, rolled, "rolled", func(v observation) bool { return v.isReady() && v.machine.Status.Revision == was })
	s.installedOnce(t, v.machine, before.Status.Attempt+1)
	eventually(t, takeoverLimit, "the Rollout is done", func() bool {
		n := &v1alpha1.NodeType{}
		if err := s.env.ManagementClient.Get(t.Context(), client.ObjectKey{Name: rolledType}, n); err != nil {
			return false
		}
		return n.Status.Stable() == n.Status.Target() && n.Status.Stable() == v.machine.Status.Installed()
	})
}

// installedOnce reports a Machine that was installed another number of times than once since the restore.
func (s *restoreCase) installedOnce(t *testing.T, m *v1alpha1.Machine, attempt int64) {
	t.Helper()
	if began, succeeded := s.fleet.attempts(m); succeeded != 1 || m.Status.Attempt != attempt {
		t.Errorf("%s was installed %d times in %d attempts of its host, as attempt %d, not %d", m.Name, succeeded, began, m.Status.Attempt, attempt)
	}
}

// holdInClaiming has the API server refuse the phase after Claiming to the Machine. It returns when it does. No backup has the policy.
func (s *restoreCase) holdInClaiming(t *testing.T, name string) {
	t.Helper()
	fail, all := admissionv1.Fail, admissionv1.NamespacedScope
	meta := metav1.ObjectMeta{Name: "hold-in-claiming"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machines/status"}, Scope: &all},
		}}}},
		Validations: []admissionv1.Validation{{
			// The Machine pending is for the question below.
			Expression: fmt.Sprintf(`!(object.metadata.name in [%q, "pending"]) || object.status.phase != "Provisioning"`, name), Message: heldMessage,
		}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	for _, o := range []client.Object{policy, binding} {
		if err := s.env.ManagementClient.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	eventually(t, takeoverLimit, "the API server refuses the phase", func() bool {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: "pending"}}
		err := s.env.ManagementClient.Status().Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Provisioning"}}`)), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), heldMessage)
	})
}

// claimed waits until the Machine in Claiming has written its claim.
func (s *restoreCase) claimed(t *testing.T, name, server string) {
	t.Helper()
	s.must(t, name, server, "Claiming", func(v observation) bool {
		return v.phase() == v1alpha1.MachineClaiming && v.host.Spec.ConsumerRef != nil && v.host.Spec.ConsumerRef.UID == v.machine.UID
	})
}
