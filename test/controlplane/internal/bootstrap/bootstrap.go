// Package bootstrap applies what kubeadm leaves in a new cluster so that nodes can join it: the rights of bootstrap
// tokens, the approval of the nodes' certificate requests, and the public cluster-info.
package bootstrap

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	bootstrappersGroup = "system:bootstrappers"
	nodesGroup         = "system:nodes"
	anonymousUser      = "system:anonymous"

	publicNamespace = "kube-public"
	clusterInfo     = "cluster-info"
	clusterInfoRole = "kubeadm:bootstrap-signer-clusterinfo"

	rbacGroup = "rbac.authorization.k8s.io"
)

// groupBinding gives a cluster role to a group. Names are kubeadm's; kubeadm binds the group of its default tokens,
// here every bootstrap token joins nodes.
type groupBinding struct{ name, role, group string }

func groupBindings() []groupBinding {
	const approve = "system:certificates.k8s.io:certificatesigningrequests:"
	return []groupBinding{
		{"kubeadm:kubelet-bootstrap", "system:node-bootstrapper", bootstrappersGroup},
		{"kubeadm:node-autoapprove-bootstrap", approve + "nodeclient", bootstrappersGroup},
		{"kubeadm:node-autoapprove-certificate-rotation", approve + "selfnodeclient", nodesGroup},
		{"kubeadm:get-nodes", "kubeadm:get-nodes", bootstrappersGroup},
	}
}

var applyOptions = metav1.ApplyOptions{FieldManager: "ingot-controlplane", Force: true}

// Apply brings the bootstrap objects up to date. The discovery kubeconfig says where the cluster serves now.
func Apply(ctx context.Context, client kubernetes.Interface, discoveryKubeconfig []byte) error {
	if err := applyGroupBindings(ctx, client); err != nil {
		return err
	}
	return applyClusterInfo(ctx, client, discoveryKubeconfig)
}

func applyGroupBindings(ctx context.Context, client kubernetes.Interface) error {
	// A joining node looks whether its name is taken.
	getNodes := rbacv1ac.ClusterRole("kubeadm:get-nodes").
		WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("nodes").WithVerbs("get"))
	if _, err := client.RbacV1().ClusterRoles().Apply(ctx, getNodes, applyOptions); err != nil {
		return fmt.Errorf("apply cluster role %s: %w", *getNodes.Name, err)
	}
	for _, binding := range groupBindings() {
		object := rbacv1ac.ClusterRoleBinding(binding.name).
			WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacGroup).WithKind("ClusterRole").WithName(binding.role)).
			WithSubjects(rbacv1ac.Subject().WithAPIGroup(rbacGroup).WithKind("Group").WithName(binding.group))
		if _, err := client.RbacV1().ClusterRoleBindings().Apply(ctx, object, applyOptions); err != nil {
			return fmt.Errorf("apply cluster role binding %s: %w", binding.name, err)
		}
	}
	return nil
}

// applyClusterInfo publishes where the cluster is; the controller manager's bootstrap signer signs it per token.
func applyClusterInfo(ctx context.Context, client kubernetes.Interface, discoveryKubeconfig []byte) error {
	info := corev1ac.ConfigMap(clusterInfo, publicNamespace).
		WithData(map[string]string{"kubeconfig": string(discoveryKubeconfig)})
	if _, err := client.CoreV1().ConfigMaps(publicNamespace).Apply(ctx, info, applyOptions); err != nil {
		return fmt.Errorf("apply config map %s: %w", clusterInfo, err)
	}
	role := rbacv1ac.Role(clusterInfoRole, publicNamespace).WithRules(rbacv1ac.PolicyRule().
		WithAPIGroups("").WithResources("configmaps").WithResourceNames(clusterInfo).WithVerbs("get"))
	if _, err := client.RbacV1().Roles(publicNamespace).Apply(ctx, role, applyOptions); err != nil {
		return fmt.Errorf("apply role %s: %w", clusterInfoRole, err)
	}
	binding := rbacv1ac.RoleBinding(clusterInfoRole, publicNamespace).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacGroup).WithKind("Role").WithName(clusterInfoRole)).
		WithSubjects(rbacv1ac.Subject().WithAPIGroup(rbacGroup).WithKind("User").WithName(anonymousUser))
	if _, err := client.RbacV1().RoleBindings(publicNamespace).Apply(ctx, binding, applyOptions); err != nil {
		return fmt.Errorf("apply role binding %s: %w", clusterInfoRole, err)
	}
	return nil
}
