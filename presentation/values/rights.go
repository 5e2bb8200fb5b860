package values

import (
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/presentation/values/manifest"
)

// draAccount is the driver's account and its rights.
func draAccount() []any {
	account, role := draName+"-service-account-kubeletplugin", draName+"-clusterrole-kubeletplugin"
	return []any{manifest.ServiceAccount(account), manifest.ClusterRole(role,
		manifest.Rule(resourcev1.GroupName, "resourceclaims", "get", "list", "watch"),
		manifest.Rule(resourcev1.GroupName, "resourceslices", "get", "list", "watch", "create", "update", "delete"),
		manifest.Rule("", "nodes", "get", "list", "watch"),
		manifest.Rule("", "pods", "get", "list", "watch"),
		manifest.Rule("", "events", "create"),
	), manifest.ClusterRoleBinding(draName+"-clusterrole-binding-kubeletplugin", role, account)}
}

// draPolicy holds each of the driver's pods to the slices of its own node, which RBAC cannot.
func draPolicy() []any {
	const name = "resourceslices-policy-" + draName
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
			MatchConditions:  []admissionv1.MatchCondition{{Name: "is-the-driver", Expression: `request.userInfo.username == "system:serviceaccount:` + manifest.Namespace + `:` + draName + `-service-account-kubeletplugin"`}},
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

// draClasses are the DeviceClasses that the plans expect, and those that the driver's chart always makes.
func draClasses(nodeTypes []NodeType) []any {
	types := map[string]string{"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig"}
	for _, n := range nodeTypes {
		if slices.Contains(n.Plan.Tenant.FeatureGates, gatePassthrough) {
			types["vfio.gpu.nvidia.com"] = "vfio"
		}
	}
	var out []any
	for _, name := range slices.Sorted(maps.Keys(types)) {
		class := manifest.DeviceClass(name, "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '"+types[name]+"'")
		if name == nvidiaDRA {
			// Pods that ask for nvidia.com/gpu get a whole GPU of these nodes too, as the driver's chart has it.
			extended := "nvidia.com/gpu"
			class.Spec.ExtendedResourceName = &extended
		}
		out = append(out, class)
	}
	return out
}
