package tenant

import (
	"bytes"
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// Groups of a node before and after it has its certificate.
const (
	ingotBootstrappers   = tenantaccess.BootstrapGroup
	kubeadmBootstrappers = tenantaccess.KubeadmBootstrapGroup
	nodes                = "system:nodes"
)

// joinRight is one right that a joining node needs.
type joinRight struct {
	name, role, group string
	verb, subresource string
	what              string
}

// joinRights are the rights for a join by TLS bootstrap. The roles are in every cluster (kubernetes.io/docs, TLS bootstrapping).
var joinRights = []joinRight{
	{"ingot:node-bootstrapper", "system:node-bootstrapper", ingotBootstrappers, "create", "", "ask for its certificate"},
	{"ingot:node-autoapprove", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", ingotBootstrappers, "create", "nodeclient", "be given its certificate without a person"},
	{"ingot:node-renewal", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", nodes, "create", "selfnodeclient", "renew its certificate"},
}

// checkJoin checks whether bootstrap tokens have the rights of a joining node.
func (t *tenant) checkJoin(ctx context.Context) {
	const topic = "join"
	t.checkClusterInfo(ctx)
	missing := false
	for _, s := range joinRights {
		allowed, err := t.canJoin(ctx, s)
		if apierrors.IsForbidden(err) {
			t.add(levelNote, topic, "whether a node may %s cannot be found out, since the user may not ask for others' rights: try it with --try-join", s.what)
			return
		}
		if err != nil {
			t.add(levelNote, topic, "whether a node may %s cannot be found out: %v", s.what, err)
			return
		}
		if !allowed {
			missing = true
			t.add(levelMend, topic, "a node may not %s: bind ClusterRole %s to the group %s (--tenant-side prints it)", s.what, s.role, s.group)
			t.grants = append(t.grants, s.clusterRoleBinding())
		}
	}
	if !missing {
		t.add(levelOK, topic, "bootstrap tokens have the rights of a joining node; --try-join shows whether they are accepted and certificates issued")
	}
}

// canJoin asks the API server for an invented token, or node, that is in the groups of real ones.
func (t *tenant) canJoin(ctx context.Context, s joinRight) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: "system:bootstrap:ingot0", Groups: []string{"system:bootstrappers", ingotBootstrappers, kubeadmBootstrappers, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: s.subresource, Verb: s.verb,
		},
	}
	if s.group == nodes {
		spec.User, spec.Groups = "system:node:ingot-trial", []string{nodes, "system:authenticated"}
	}
	review, err := t.api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

func (r joinRight) clusterRoleBinding() cli.Object {
	return cli.Object{"apiVersion": rbacAPI, "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": r.name},
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": r.role},
		"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "Group", "name": r.group}}}
}

// checkClusterInfo compares the certificate authority that kubeadm published with the one that nodes will pin. Ingot's own join does
// not read it, and many clusters have none.
func (t *tenant) checkClusterInfo(ctx context.Context) {
	info, err := t.api.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
	if err != nil {
		return
	}
	published, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil {
		return
	}
	for _, cluster := range published.Clusters {
		if cluster != nil && !bytes.Equal(bytes.TrimSpace(cluster.CertificateAuthorityData), bytes.TrimSpace(t.config.CAData)) {
			t.add(levelNote, "join", "ConfigMap kube-public/cluster-info has another certificate authority than the kubeconfig, which is the one that nodes will pin")
		}
	}
}
