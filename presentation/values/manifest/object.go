package manifest

import (
	"bytes"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Namespace of DaemonSets and their accounts.
const Namespace = metav1.NamespaceSystem

// Object is a typed object without what only a cluster fills in.
func Object(typed any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("write a manifest for the tenant's cluster: %w", err)
	}
	delete(content, "status")
	prune(content)
	return &unstructured.Unstructured{Object: content}, nil
}

// prune removes members without a value, and maps that have none left: encoders write them for structs.
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

// Objects are typed objects, in their order.
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

// ConfigMap with the files.
func ConfigMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data,
	}
}

// DaemonSet runs a pod on every node that the pod selects. Labels tell its pods from those of every other DaemonSet.
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

// HostPath is a folder of the node. The kind may be empty.
func HostPath(name, path string, kind corev1.HostPathType) corev1.Volume {
	source := &corev1.HostPathVolumeSource{Path: path}
	if kind != "" {
		source.Type = &kind
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: source}}
}

// Mount of a volume.
func Mount(name, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: name, MountPath: path}
}

// Env is a variable.
func Env(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

// Field is a variable that has a field of the pod.
func Field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// Unprivileged is a container that may do nothing beyond its files.
func Unprivileged() *corev1.SecurityContext {
	no := false
	return &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

// Privileged is a container that may do everything.
func Privileged() *corev1.SecurityContext {
	yes := true
	return &corev1.SecurityContext{Privileged: &yes}
}

// YAML is a file with the objects, and what they are about as a comment on top.
func YAML(about string, all []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	out.Write(Comment(about))
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

// Comment is lines of a comment.
func Comment(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte("# " + strings.ReplaceAll(text, "\n", "\n# ") + "\n")
}
