package entitlement

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// policies returns the policies of a tenant and their bindings.
func (p *planner) policies() []any {
	var out []any
	for _, policy := range []*admissionv1.ValidatingAdmissionPolicy{p.claimPolicy(), p.podPolicy()} {
		policy.TypeMeta = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"}
		policy.Spec.FailurePolicy = ptr.To(admissionv1.Fail)
		out = append(out, policy, &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: p.meta(policy.Name),
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
				MatchResources: &admissionv1.MatchResources{
					NamespaceSelector: NamespaceSelector(p.in.Entitlement.Spec.Namespaces), ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: ptr.To(admissionv1.Equivalent),
				},
			},
		})
	}
	return out
}

// systemNamespaces are those in which a selector never matches: the pods of the cluster itself would be refused.
var systemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// NamespaceSelector returns the selector of a tenant's namespaces.
func NamespaceSelector(n v1alpha1.TenantNamespaces) *metav1.LabelSelector {
	if n.Selector == nil {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: n.Names},
		}}
	}
	out := n.Selector.DeepCopy()
	out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: systemNamespaces,
	})
	return out
}

func constraints(group, version string, operations []admissionv1.OperationType, resources ...string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		// A request in another version of the API is converted before it is judged.
		MatchPolicy: ptr.To(admissionv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: ptr.To(admissionv1.NamespacedScope)},
		}}},
	}
}

// isUnchanged passes an update that leaves the spec as it is. Without it: a class is taken away, the finalizer of a claim that ran with it cannot be
// removed, and its namespace is never deleted.
var isUnchanged = admissionv1.MatchCondition{Name: "spec-is-new", Expression: "oldObject == null || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"}

// claimPolicy judges ResourceClaims and ResourceClaimTemplates.
func (p *planner) claimPolicy() *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: p.meta(p.claimPolicyName()),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: constraints("resource.k8s.io", "v1", []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, "resourceclaims", "resourceclaimtemplates"),
			MatchConditions:  []admissionv1.MatchCondition{isUnchanged},
			Variables: []admissionv1.Variable{
				{Name: "classes", Expression: list(p.deviceClasses())},
				{Name: "claim", Expression: "request.resource.resource == 'resourceclaimtemplates' ? object.spec.spec : object.spec"},
				{Name: "requests", Expression: "has(variables.claim.devices) && has(variables.claim.devices.requests) && variables.claim.devices.requests != null ? variables.claim.devices.requests : []"},
				{Name: "opaque", Expression: "has(variables.claim.devices) && has(variables.claim.devices.config) && variables.claim.devices.config != null ? " +
					"variables.claim.devices.config.filter(c, has(c.opaque)).map(c, c.opaque) : []"},
			},
			Validations: []admissionv1.Validation{
				{
					Expression: "variables.requests.all(r, (has(r.exactly) || has(r.firstAvailable)) && (!has(r.exactly) || r.exactly.deviceClassName in variables.classes) && " +
						"(!has(r.firstAvailable) || r.firstAvailable.all(f, f.deviceClassName in variables.classes)))",
					MessageExpression: p.refusal("claims", "may name only these DeviceClasses, also in firstAvailable: "+orNone(p.deviceClasses())),
				},
				{
					Expression:        "variables.requests.all(r, !has(r.exactly) || !has(r.exactly.adminAccess) || !r.exactly.adminAccess)",
					MessageExpression: p.refusal("claims", "may not use adminAccess"),
				},
				{
					Expression: fmt.Sprintf("variables.requests.all(r, (!has(r.exactly) || !has(r.exactly.tolerations) || r.exactly.tolerations.all(t, %[1]s)) && "+
						"(!has(r.firstAvailable) || r.firstAvailable.all(f, !has(f.tolerations) || f.tolerations.all(t, %[1]s))))", p.leavesGate()),
					MessageExpression: p.refusal("claims", p.keepsGate()),
				},
				{
					// A driver reads the names of members without regard to case, so that no others than these are known to be no second kind.
					Expression: fmt.Sprintf("variables.opaque.all(o, has(o.parameters.kind) && (o.driver + ' ' + o.parameters.kind) in %s && o.parameters.all(k, k in ['apiVersion', 'kind', 'sharing', 'iommu']))",
						list(p.parameters())),
					MessageExpression: p.refusal("claims", "may give drivers only these parameters, with no members but apiVersion, kind, sharing and iommu: "+orNone(p.parameters())),
				},
				{
					Expression: "variables.opaque.size() == 0 || variables.requests.all(r, (!has(r.exactly) || !has(r.exactly.capacity)) && " +
						"(!has(r.firstAvailable) || r.firstAvailable.all(f, !has(f.capacity))))",
					MessageExpression: p.refusal("claims", "may give drivers no parameters for devices of which they ask a part, because others have the rest"),
				},
			},
		},
	}
}

// parameterKinds are the kinds of parameters that set nothing beyond the devices of their own claim, by the kind of the devices. Others lead to other devices, such
// as the channels of a ComputeDomain, or nobody knows what they do.
var parameterKinds = map[v1alpha1.DeviceKind]string{v1alpha1.DeviceGPU: "GpuConfig", v1alpha1.DeviceMIG: "MigDeviceConfig", v1alpha1.DeviceVFIO: "VfioDeviceConfig"}

// parameters returns what claims may tell drivers: the driver and the kind of the parameters.
func (p *planner) parameters() []string {
	var out []string
	for _, c := range p.classes {
		if kind := parameterKinds[c.Kind]; kind != "" && c.DeviceClass != "" {
			out = append(out, wellknown.NVIDIADRADriver+" "+kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// leavesGate returns the condition on a toleration t that it does not tolerate a gate.
func (p *planner) leavesGate() string {
	return fmt.Sprintf("has(t.key) && t.key != '' && !(t.key in %s)", list(p.in.GateKeys))
}

// podPolicy judges Pods, and who binds them.
func (p *planner) podPolicy() *admissionv1.ValidatingAdmissionPolicy {
	match := constraints("", "v1", []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, "pods")
	bindings := constraints("", "v1", []admissionv1.OperationType{admissionv1.Create}, "pods/binding", "bindings")
	match.ResourceRules = append(match.ResourceRules, bindings.ResourceRules...)
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: p.meta(p.podPolicyName()),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: match,
			MatchConditions:  []admissionv1.MatchCondition{isUnchanged},
			Variables: []admissionv1.Variable{
				{Name: "allowed", Expression: list(p.resources())},
				{Name: "guarded", Expression: list(p.in.Guarded)},
				{Name: "isBinding", Expression: "request.resource.resource == 'bindings' || has(request.subResource) && request.subResource == 'binding'"},
				{Name: "containers", Expression: "variables.isBinding ? [] : object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])"},
				{Name: "asked", Expression: "variables.containers.map(c, has(c.resources) && has(c.resources.requests) ? c.resources.requests.map(k, k) : []) + " +
					"variables.containers.map(c, has(c.resources) && has(c.resources.limits) ? c.resources.limits.map(k, k) : [])"},
			},
			Validations: []admissionv1.Validation{
				{
					Expression: "variables.asked.all(names, names.all(n, n in variables.allowed || !(n in variables.guarded || variables.guarded.exists(g, g.endsWith('*') && " +
						"n.startsWith(g.substring(0, g.size() - 1))))))",
					MessageExpression: p.refusal("pods", "may ask only for these of the resources that are shared out: "+orNone(p.resources())),
				},
				{
					Expression:        "variables.isBinding || !has(object.spec.tolerations) || object.spec.tolerations.all(t, " + p.leavesGate() + ")",
					MessageExpression: p.refusal("pods", p.keepsGate()),
				},
				{
					Expression:        "variables.isBinding || request.operation != 'CREATE' || !has(object.spec.nodeName) || object.spec.nodeName == ''",
					MessageExpression: p.refusal("pods", "may not set spec.nodeName, which bypasses the scheduler: use a nodeSelector or an affinity"),
				},
				{
					Expression:        "!variables.isBinding || request.userInfo.username in " + list(p.schedulers()),
					MessageExpression: p.refusal("pods", "are bound by a scheduler alone: "+strings.Join(p.schedulers(), ", ")),
				},
			},
		},
	}
}

// refusal returns a message: of what kind of the tenant's objects, what they may not do, and where that is decided.
func (p *planner) refusal(kind, what string) string {
	e := p.in.Entitlement
	return literal(fmt.Sprintf("%s of tenant %s %s (Entitlement %s/%s of Ingot)", kind, e.Spec.Tenant, what, e.Namespace, e.Name))
}

// keepsGate is what a claim or a pod with a toleration of the gate is told.
func (p *planner) keepsGate() string {
	return "may not tolerate the gate of a node that is not admitted: each toleration must name a key, and none of " + strings.Join(p.in.GateKeys, ", ")
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (p *planner) schedulers() []string {
	if len(p.in.Entitlement.Spec.Schedulers) > 0 {
		return p.in.Entitlement.Spec.Schedulers
	}
	return []string{"system:kube-scheduler"}
}
