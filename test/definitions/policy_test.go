package definitions_test

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/test/environment"
)

// as is a client of a user who may create Machines and NodePools, and nothing else.
func as(t *testing.T, cluster *rest.Config, scheme *runtime.Scheme, user string) client.Client {
	t.Helper()
	impersonated := rest.CopyConfig(cluster)
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"teams"}}
	c, err := client.New(impersonated, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func testUse(t *testing.T, cluster *rest.Config, admin client.Client, scheme *runtime.Scheme) {
	ctx := t.Context()
	policy, err := environment.ReadManifests(config.Files, "policy")
	if err != nil {
		t.Fatal(err)
	}
	if err := environment.Apply(ctx, admin, policy); err != nil {
		t.Fatal(err)
	}
	own := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "use-h100"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"ingot.dev"}, Resources: []string{"nodetypes"}, ResourceNames: []string{"h100"}, Verbs: []string{"use"}},
	}}
	edit := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "order"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"ingot.dev"}, Resources: []string{"machines", "nodepools"}, Verbs: []string{"create", "patch"}},
	}}
	bind := func(name, role string, to rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		to.APIGroup = rbacv1.GroupName
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{to}}
	}
	for _, o := range []client.Object{
		own, edit, bind("order", "order", rbacv1.Subject{Kind: "Group", Name: "teams"}),
		bind("use-h100", "use-h100", rbacv1.Subject{Kind: "User", Name: "ada"}),
		bind("use-all", "ingot-nodetype-user", rbacv1.Subject{Kind: "User", Name: "grace"}),
	} {
		if err := admin.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	awaitPolicy(t, admin, as(t, cluster, scheme, "nobody"))
	for _, c := range []struct {
		user, nodeType string
		may            bool
	}{{"ada", "h100", true}, {"ada", "h200", false}, {"grace", "h100", true}, {"grace", "h200", true}, {"nobody", "h100", false}} {
		for _, o := range []client.Object{pool(c.user+"-", c.nodeType), machine(c.user+"-", c.nodeType)} {
			err := as(t, cluster, scheme, c.user).Create(ctx, o)
			if c.may && err != nil {
				t.Errorf("%s creates a %T of %s: %v", c.user, o, c.nodeType, err)
			}
			if !c.may && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not use NodeType "+c.nodeType)) {
				t.Errorf("%s creates a %T of %s: got %v, want a refusal that names the NodeType", c.user, o, c.nodeType, err)
			}
		}
	}
}

// awaitPolicy returns when the API server enforces what it was just given.
func awaitPolicy(t *testing.T, admin, nobody client.Client) {
	t.Helper()
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "ingot-use-nodetype"}, binding); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err := nobody.Create(t.Context(), machine("probe-", "h100"), client.DryRunAll); err != nil && strings.Contains(err.Error(), "may not use") {
			return
		}
	}
	t.Fatal("the policy is not enforced a minute after it was applied")
}

func pool(prefix, nodeType string) *v1alpha1.NodePool {
	return &v1alpha1.NodePool{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix, Namespace: metav1.NamespaceDefault},
		Spec:       v1alpha1.NodePoolSpec{NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
	}
}

func machine(prefix, nodeType string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix, Namespace: metav1.NamespaceDefault},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
	}
}
