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
	// rolledType is the NodeType that is changed. Its Machines have the names of their servers: the backup is made while a pod keeps rolled from
	// being emptied, and while the server of fenced is off and its Node is deleted.
	rolledType, rolled, fenced = "rolled", "rolled", "fenced"
	// heldMessage is what the API server says of a Machine that is not to be installed yet.
	heldMessage = "this Machine is not to be installed yet"
)

// orderRolled makes a copy of the NodeType, and the Machines that are rolled in each restore.
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
	two := intstr.FromInt32(2)
	own.Spec.Rollout = &v1alpha1.RolloutPolicy{MaxUnavailable: &two, Canary: &v1alpha1.CanarySpec{Machines: 2, Bake: &metav1.Duration{Duration: time.Second}}}
	objects := []client.Object{own}
	for _, name := range []string{rolled, fenced} {
		objects = append(objects, &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: name},
			Spec: v1alpha1.MachineSpec{
				NodeTypeRef: v1alpha1.LocalReference{Name: rolledType}, TenantClusterRef: v1alpha1.LocalReference{Name: tenantName}, HostName: name,
			},
		})
	}
	for _, o := range objects {
		if err := s.env.ManagementClient.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// roll changes the NodeType, so that a Rollout begins. It returns when one Machine waits for a pod that no budget lets go, and the other to be
// installed.
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
	emptied := s.must(t, rolled, rolled, "emptied for its roll", isEmptied)
	off := s.must(t, fenced, fenced, "powered off for its roll", func(v observation) bool {
		return v.phase() == v1alpha1.MachineDraining && !v.host.Spec.Online && !v.host.Status.PoweredOn && v.node == nil
	})
	for _, m := range []*v1alpha1.Machine{emptied.machine, off.machine} {
		if m.Spec.Revision == m.Status.Revision || m.Labels[v1alpha1.LabelRollout] == "" {
			t.Fatalf("%s is rolled to %q by Rollout %q", m.Name, m.Spec.Revision, m.Labels[v1alpha1.LabelRollout])
		}
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

// emptiesOn waits until the Machine waits for the same pod as before, which nobody has touched, and then lets that go.
func (s *restoreCase) emptiesOn(t *testing.T, run string, writes int64) {
	t.Helper()
	s.must(t, rolled, rolled, "emptied after the restore", isEmptied)
	pod, budget := s.trainingOf(run)
	if err := s.env.TenantClient.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("its pod: %v, deleted %v", err, pod.DeletionTimestamp)
	}
	if now := s.env.Rack.Server(rolled).BMC().Writes(); now != writes {
		t.Errorf("the BMC of %s got %d writes while a pod runs there", rolled, now-writes)
	}
	if err := s.env.TenantClient.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
}

// rollsOn waits until both Machines were installed with the revision that they were rolled to, once, and the Rollout is done.
func (s *restoreCase) rollsOn(t *testing.T, before map[string]*v1alpha1.Machine) {
	t.Helper()
	var to v1alpha1.RenderedRevision
	for _, name := range []string{rolled, fenced} {
		v := s.must(t, name, name, "rolled", func(v observation) bool {
			return v.isReady() && v.machine.Status.Revision == before[name].Spec.Revision
		})
		s.installedOnce(t, v.machine, before[name].Status.Attempt+1)
		to = v.machine.Status.Installed()
	}
	eventually(t, takeoverLimit, "the Rollout is done", func() bool {
		n := &v1alpha1.NodeType{}
		if err := s.env.ManagementClient.Get(t.Context(), client.ObjectKey{Name: rolledType}, n); err != nil {
			return false
		}
		return n.Status.Stable() == n.Status.Target() && n.Status.Stable() == to
	})
}

// installedOnce reports a Machine that was installed another number of times than once since the restore.
func (s *restoreCase) installedOnce(t *testing.T, m *v1alpha1.Machine, attempt int64) {
	t.Helper()
	if began, succeeded := s.fleet.attempts(m); succeeded != 1 || m.Status.Attempt != attempt {
		t.Errorf("%s was installed %d times in %d attempts of its host, as attempt %d, not %d", m.Name, succeeded, began, m.Status.Attempt, attempt)
	}
}

// hold has the API server refuse to the Machine that is claiming a host, and to the fenced one, the phase in which they are installed. It returns
// when it does. No backup has the policy.
func (s *restoreCase) hold(t *testing.T, claiming string) {
	t.Helper()
	fail, all := admissionv1.Fail, admissionv1.NamespacedScope
	meta := metav1.ObjectMeta{Name: "not-yet"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machines/status"}, Scope: &all},
		}}}},
		Validations: []admissionv1.Validation{{
			// The Machine pending is for the question below.
			Expression: fmt.Sprintf(`!(object.metadata.name in [%q, %q, "pending"]) || object.status.phase != "Provisioning"`, claiming, fenced), Message: heldMessage,
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
