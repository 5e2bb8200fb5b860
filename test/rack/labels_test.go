package rack_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFeatureDiscoveryLabelsItsNodeOnceItMay(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r, s := newServer(t, "hgx-h100")
	const name = "labelled"
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "discovery-" + name}
	if _, err := c.admin.CoreV1().ServiceAccounts(meta.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"name": meta.Name}
	_, err := c.admin.AppsV1().DaemonSets(meta.Namespace).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: name}, ServiceAccountName: meta.Name, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "discovery", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", Command: []string{"gpu-feature-discovery"},
				Env: []corev1.EnvVar{{Name: "MIG_STRATEGY", Value: "mixed"}},
			}},
		}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.installs(s, name, c.userData(name, c.token("labela")))
	c.awaitNode("the node is ready", name, ready)
	eventually(t, "the pod is refused as long as its account may not", func() error { return c.crashes(name) })
	role := meta.Name
	_, err = c.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "update"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node := c.awaitNode("the node is labelled", name, func(n *corev1.Node) bool { return n.Labels["nvidia.com/gpu.count"] != "" })
	for key, want := range map[string]string{"nvidia.com/gpu.count": "8", "nvidia.com/gpu.family": "hopper", "nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"} {
		if node.Labels[key] != want {
			t.Errorf("%s is %q, want %q", key, node.Labels[key], want)
		}
	}
}

// crashes is nil once a pod of the node ends again and again.
func (c *tenant) crashes(node string) error {
	pods, err := c.admin.CoreV1().Pods(metav1.NamespaceSystem).List(c.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff" {
				return nil
			}
		}
	}
	return errors.New("every pod runs")
}
