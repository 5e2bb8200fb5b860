package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Namespace is where DaemonSets and their service accounts are created.
const Namespace = metav1.NamespaceSystem

// Object converts a typed object, and removes what only a cluster fills in.
func Object(typed any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("write a manifest for the tenant's cluster: %w", err)
	}
	delete(content, "status")
	prune(content)
	return &unstructured.Unstructured{Object: content}, nil
}

// prune removes members without a value, and maps that are empty after that. Encoders write them for structs.
func prune(content map[string]any) {
	for key, value := range content {
		switch v := value.(type) {
		case nil:
			delete(content, key)
		case map[string]any:
			full := len(v) > 0 || key == "resources"
			prune(v)
			if full && len(v) == 0 {
				delete(content, key)
			}
		case []any:
			for _, each := range v {
				if m, ok := each.(map[string]any); ok {
					prune(m)
				}
			}
		}
	}
}

// Objects converts typed objects and keeps their order.
func Objects(typed ...any) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, each := range typed {
		o, err := Object(each)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// ConfigMap returns a ConfigMap with the data.
func ConfigMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data,
	}
}

// DaemonSet returns a DaemonSet that runs the pod on every node that the pod selects. No other DaemonSet may have the same labels.
func DaemonSet(name string, labels map[string]string, pod corev1.PodSpec) *appsv1.DaemonSet {
	pod.PriorityClassName = "system-node-critical"
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template:       corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// HostPath returns a volume with a directory of the node. The kind may be empty.
func HostPath(name, path string, kind corev1.HostPathType) corev1.Volume {
	source := &corev1.HostPathVolumeSource{Path: path}
	if kind != "" {
		source.Type = &kind
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: source}}
}

// Mount returns the mount of a volume.
func Mount(name, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: name, MountPath: path}
}

// Env returns an environment variable with a value.
func Env(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

// EnvFromField returns an environment variable whose value is a field of the pod.
func EnvFromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// Unprivileged returns the security context of a container without capabilities.
func Unprivileged() *corev1.SecurityContext {
	no := false
	return &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

// Privileged returns the security context of a privileged container.
func Privileged() *corev1.SecurityContext {
	yes := true
	return &corev1.SecurityContext{Privileged: &yes}
}

// GRPCProbe returns a probe of the gRPC service liveness on the port. The period and the time-out are in seconds.
func GRPCProbe(port, failures, period, timeout int32) *corev1.Probe {
	service := "liveness"
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port, Service: &service}}, FailureThreshold: failures, PeriodSeconds: period, TimeoutSeconds: timeout,
	}
}

// YAML writes the objects as one file, with the text as a comment on top.
func YAML(comment string, all []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	out.Write(Comment(comment))
	for i, o := range all {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// Comment writes the text as lines of a YAML comment.
func Comment(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte("# " + strings.ReplaceAll(text, "\n", "\n# ") + "\n")
}

// Rule returns a rule of a ClusterRole for one kind of resource.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// ServiceAccount returns the service account of a DaemonSet.
func ServiceAccount(name string) any {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
}

// ClusterRole returns a ClusterRole with the rules.
func ClusterRole(name string, rules ...rbacv1.PolicyRule) any {
	return &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// ClusterRoleBinding returns a binding that gives the role to the service account.
func ClusterRoleBinding(name, role, account string) any {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
	}
}

// Role returns a Role of Namespace with the rules.
func Role(name string, rules ...rbacv1.PolicyRule) any {
	return &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}, Rules: rules}
}

// RoleBinding returns a binding that gives the Role to the service account.
func RoleBinding(name, role, account string) any {
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
	}
}

// DeviceClass returns a DeviceClass that selects devices by a CEL expression.
func DeviceClass(name, expression string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
	}
}

// Custom returns an object of a custom resource. It is cluster-scoped when the namespace is empty.
func Custom(version, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "spec": spec}}
	out.SetName(name)
	if namespace != "" {
		out.SetNamespace(namespace)
	}
	return out
}

// ResourceSlicePolicy returns an admission policy, with its binding, that lets each pod of a DRA driver write only the ResourceSlices
// of its own node. RBAC cannot express that. The pods are known by their service account.
func ResourceSlicePolicy(name, account string) []any {
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

// Tolerations converts tolerations for the values of a chart.
func Tolerations(all []corev1.Toleration) []any {
	var out []any
	for _, t := range all {
		entry := map[string]any{"key": t.Key, "operator": string(t.Operator)}
		if t.Effect != "" {
			entry["effect"] = string(t.Effect)
		}
		if t.Value != "" {
			entry["value"] = t.Value
		}
		out = append(out, entry)
	}
	return out
}

// Affinity returns, for the values of a chart, the affinity to nodes whose label has one of the given values.
func Affinity(label string, oneOf []string) map[string]any {
	expression := map[string]any{"key": label, "operator": string(corev1.NodeSelectorOpIn), "values": Strings(oneOf)}
	return map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
		"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{expression}}},
	}}}
}

// Strings converts strings for the values of a chart.
func Strings(all []string) []any {
	out := make([]any, 0, len(all))
	for _, w := range all {
		out = append(out, w)
	}
	return out
}

// MergeConfigurations makes one configuration file of several. In each of them the member has entries by name; others are further entries.
func MergeConfigurations(member string, files []string, others map[string]any) (string, error) {
	entries := map[string]any{}
	for i, text := range files {
		var file map[string]any
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			return "", fmt.Errorf("read configuration %d of %s: %w", i, member, err)
		}
		some, ok := file[member].(map[string]any)
		if !ok {
			return "", fmt.Errorf("read configuration %d: it has no %s", i, member)
		}
		maps.Copy(entries, some)
	}
	maps.Copy(entries, others)
	text, err := yaml.Marshal(map[string]any{"version": "v1", member: entries})
	if err != nil {
		return "", fmt.Errorf("write %s: %w", member, err)
	}
	return string(text), nil
}
