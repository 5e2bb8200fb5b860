package manifest

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Rule of a ClusterRole about one kind of resource.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// ServiceAccount of a DaemonSet.
func ServiceAccount(name string) any {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
}

// ClusterRole with the rules.
func ClusterRole(name string, rules ...rbacv1.PolicyRule) any {
	return &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// ClusterRoleBinding gives the role to the account.
func ClusterRoleBinding(name, role, account string) any {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
	}
}

// DeviceClass selects devices by an expression.
func DeviceClass(name, expression string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
	}
}

// Custom is an object of a kind that is not Kubernetes' own. An empty namespace is none.
func Custom(version, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "spec": spec}}
	out.SetName(name)
	if namespace != "" {
		out.SetNamespace(namespace)
	}
	return out
}

// OwnSlices hold each pod of a DRA driver, by its account, to the ResourceSlices of its own node, which RBAC cannot.
func OwnSlices(name, account string) []any {
	fail := admissionv1.Fail
	typ := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
	}
	slicesRule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{resourcev1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"resourceslices"}},
	}
	return []any{
		&admissionv1.ValidatingAdmissionPolicy{TypeMeta: typ("ValidatingAdmissionPolicy"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: slicesRule}}},
			MatchConditions:  []admissionv1.MatchCondition{{Name: "is-the-driver", Expression: `request.userInfo.username == "system:serviceaccount:` + Namespace + `:` + account + `"`}},
			Variables: []admissionv1.Variable{
				{Name: "podNode", Expression: `request.userInfo.extra[?"authentication.kubernetes.io/node-name"][0].orValue("")`},
				{Name: "sliceNode", Expression: `(request.operation == "DELETE" ? oldObject : object).spec.?nodeName.orValue("")`},
			},
			Validations: []admissionv1.Validation{
				{Expression: `variables.podNode != ""`, Message: "the token names no node, so that it is none of a pod of the driver"},
				{Expression: "variables.podNode == variables.sliceNode", MessageExpression: `"a driver on node " + variables.podNode + " may not write a ResourceSlice of node " + variables.sliceNode`},
			},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{TypeMeta: typ("ValidatingAdmissionPolicyBinding"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	}
}
