package definitions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/management"
)

const team = "team-a"

// rights has a client for each kind of person in the namespace team-a. Each has one of Kubernetes' own roles there: viewer has view, editor and
// owner have edit, chief has admin. The owner may use NodeType h100 besides, and the grower has edit and the verb grow.
type rights struct {
	admin, manager, collector, viewer, editor, owner, chief, grower client.Client
}

// testTenantRoles checks the rights of people who have no more than Kubernetes' own roles, and the policies about growth, as the API server applies them.
func testTenantRoles(t *testing.T, cluster *rest.Config, admin client.Client, scheme *runtime.Scheme) {
	r := newRights(t, cluster, admin, scheme)
	t.Run("roles", r.testRoles)
	t.Run("growth", r.testGrowth)
	t.Run("scale", r.testScale)
	t.Run("leaving a pool", r.testLeavingAPool)
	t.Run("installation", r.testInstallation)
	t.Run("why", func(t *testing.T) { testWhy(t, cluster, admin) })
	t.Run("why elsewhere", func(t *testing.T) { testWhyElsewhere(t, cluster, admin) })
	t.Run("why --log", func(t *testing.T) { testWhyLog(t, cluster, admin, r.manager) })
}

func newRights(t *testing.T, cluster *rest.Config, admin client.Client, scheme *runtime.Scheme) rights {
	t.Helper()
	roles, err := environment.ReadManifests(config.Files, "rbac")
	if err != nil {
		t.Fatal(err)
	}
	clusterRoles := slices.DeleteFunc(roles, func(o *unstructured.Unstructured) bool { return o.GetKind() != "ClusterRole" })
	if err := environment.Apply(t.Context(), admin, clusterRoles); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "owner-use-h100"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"ingot.dev"}, Resources: []string{"nodetypes"}, ResourceNames: []string{"h100"}, Verbs: []string{"use"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "owner-use-h100"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "owner-use-h100"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "owner"}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "manager"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ingot-manager"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ingot-system", Name: "ingot-manager"}},
		},
	}
	for _, b := range []struct{ user, role string }{
		{"viewer", "view"}, {"editor", "edit"}, {"owner", "edit"}, {"chief", "admin"}, {"grower", "edit"}, {"grower", "ingot-nodepool-grower"},
	} {
		objects = append(objects, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: b.user + "-" + b.role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: b.user}},
		})
	}
	for _, o := range objects {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	awaitAggregation(t, admin)
	user := func(name string) client.Client {
		impersonated := rest.CopyConfig(cluster)
		impersonated.Impersonate = rest.ImpersonationConfig{UserName: name}
		c, err := client.New(impersonated, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return rights{
		admin: admin, manager: user(managerUser), collector: user("system:serviceaccount:kube-system:generic-garbage-collector"), viewer: user("viewer"), editor: user("editor"), owner: user("owner"), chief: user("chief"), grower: user("grower"),
	}
}

// awaitAggregation returns when Kubernetes' own roles have the rules of those that are to be added to them.
func awaitAggregation(t *testing.T, admin client.Client) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		complete := true
		for _, name := range []string{"view", "edit", "admin"} {
			role := &rbacv1.ClusterRole{}
			if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
				t.Fatal(err)
			}
			complete = complete && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, "ingot.dev") && (name == "view" || slices.Contains(r.Verbs, "create")) && (name != "admin" || slices.Contains(r.Resources, "tenantclusters"))
			})
		}
		if complete {
			return
		}
	}
	t.Fatal("the rules were not added to the roles view, edit and admin within a minute")
}

// pool creates a pool of the team.
func (r rights) pool(t *testing.T, name string, replicas int32) *v1alpha1.NodePool {
	t.Helper()
	p := pool("", "h100")
	p.Namespace, p.Name, p.Spec.Replicas = team, name, ptr.To(replicas)
	if err := r.admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (r rights) testRoles(t *testing.T) {
	ctx := t.Context()
	mine := r.pool(t, "read", 1)
	cluster := &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "research"}, Spec: v1alpha1.TenantClusterSpec{
		KubeconfigSecretRef: v1alpha1.LocalReference{Name: "research"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
	}}
	if err := r.editor.Create(ctx, cluster.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("edit creates a TenantCluster: %v", err)
	}
	if err := r.chief.Create(ctx, cluster); err != nil {
		t.Errorf("admin creates a TenantCluster: %v", err)
	}
	for name, c := range map[string]client.Client{"view": r.viewer, "edit": r.editor, "admin": r.chief} {
		for _, l := range []client.ObjectList{&v1alpha1.NodePoolList{}, &v1alpha1.MachineList{}, &v1alpha1.TenantClusterList{}} {
			if err := c.List(ctx, l, client.InNamespace(team)); err != nil {
				t.Errorf("%s lists %T: %v", name, l, err)
			}
			if err := c.List(ctx, l, client.InNamespace("default")); !apierrors.IsForbidden(err) {
				t.Errorf("%s lists %T of another namespace: %v", name, l, err)
			}
		}
		for _, l := range []client.ObjectList{&v1alpha1.HostRecordList{}, &v1alpha1.RolloutList{}} {
			if err := c.List(ctx, l, client.InNamespace(team)); !apierrors.IsForbidden(err) {
				t.Errorf("%s lists %T: %v", name, l, err)
			}
		}
		if err := c.Status().Patch(ctx, mine.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"readyReplicas":7}}`))); !apierrors.IsForbidden(err) {
			t.Errorf("%s changes the status of a NodePool: %v", name, err)
		}
	}
	if err := r.viewer.List(ctx, &corev1.SecretList{}, client.InNamespace(team)); !apierrors.IsForbidden(err) {
		t.Errorf("view lists Secrets: %v", err)
	}
	if err := r.viewer.Delete(ctx, mine.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("view deletes a NodePool: %v", err)
	}
	if err := r.editor.Delete(ctx, mine); err != nil {
		t.Errorf("edit deletes a NodePool: %v", err)
	}
}

// testGrowth: the right to use the NodeType is asked for when a pool grows, not only when it is created.
func (r rights) testGrowth(t *testing.T) {
	p := r.pool(t, "grown", 2)
	replicas := func(n int) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "editor may not use NodeType h100") {
			t.Errorf("%s: got %v, want a refusal that names the NodeType", what, err)
		}
	}
	refused("a pool grows", r.editor.Patch(t.Context(), p.DeepCopy(), replicas(3)))
	refused("a pool is created", r.editor.Create(t.Context(), inTeam(pool("editor-", "h100"))))
	refused("a Machine is created", r.editor.Create(t.Context(), inTeam(machine("editor-", "h100"))))
	for what, patch := range map[string]client.Patch{
		"fewer replicas": replicas(1), "as many replicas": replicas(1),
		"a label": client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)),
	} {
		if err := r.editor.Patch(t.Context(), p.DeepCopy(), patch); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := r.owner.Patch(t.Context(), p.DeepCopy(), replicas(3)); err != nil {
		t.Errorf("who may use the NodeType grows a pool: %v", err)
	}
	for _, o := range []client.Object{inTeam(pool("owner-", "h100")), inTeam(machine("owner-", "h100"))} {
		if err := r.owner.Create(t.Context(), o); err != nil {
			t.Errorf("who may use the NodeType creates a %T: %v", o, err)
		}
	}
	without := p.DeepCopy()
	if err := r.admin.Patch(t.Context(), without, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":null}}`))); err != nil {
		t.Fatal(err)
	}
	refused("a pool without replicas grows", r.editor.Patch(t.Context(), without, replicas(1)))
	for _, ref := range []string{"nodeTypeRef", "tenantClusterRef"} {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"%s":{"name":"other"}}}`, ref))
		if err := r.owner.Patch(t.Context(), p.DeepCopy(), patch); err == nil {
			t.Errorf("%s was changed", ref)
		}
	}
}

// inTeam puts an object into the team's namespace.
func inTeam[T client.Object](o T) T {
	o.SetNamespace(team)
	return o
}

// testScale: the scale subresource names no NodeType, and asks for the verb grow on the pool.
func (r rights) testScale(t *testing.T) {
	p := r.pool(t, "scaled", 1)
	scale := func(c client.Client, n int32) error {
		s := &autoscalingv1.Scale{}
		if err := c.SubResource("scale").Get(t.Context(), p, s); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		s.Spec.Replicas = n
		return c.SubResource("scale").Update(t.Context(), p.DeepCopy(), client.WithSubResourceBody(s))
	}
	// Policies are enforced one after the other, some moments after they are applied, and this one has another target than those before it.
	management.Eventually(t, "the policy of the subresource is enforced", func() bool { return apierrors.IsForbidden(scale(r.editor, 5)) || scale(r.grower, 1) != nil })
	for name, c := range map[string]client.Client{"editor": r.editor, "owner": r.owner} {
		if err := scale(c, 5); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), name+" may not grow NodePool team-a/scaled") || !strings.Contains(err.Error(), `{"spec":{"replicas":5}}`) {
			t.Errorf("%s grows a pool by its scale: %v", name, err)
		}
	}
	if err := scale(r.viewer, 0); !apierrors.IsForbidden(err) {
		t.Errorf("view scales a pool: %v", err)
	}
	if err := scale(r.grower, 5); err != nil {
		t.Errorf("who has the verb grow: %v", err)
	}
	for _, n := range []int32{5, 2, 0} {
		if err := scale(r.editor, n); err != nil {
			t.Errorf("edit scales down to %d: %v", n, err)
		}
	}
	if err := scale(r.editor, 1); !apierrors.IsForbidden(err) {
		t.Errorf("edit grows a pool from 0: %v", err)
	}
}

// testLeavingAPool: a pool makes a Machine in the place of one that is not its own any more.
func (r rights) testLeavingAPool(t *testing.T) {
	ctx := t.Context()
	p := r.pool(t, "left", 1)
	m := inTeam(machine("left-", "h100"))
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p, v1alpha1.GroupVersion.WithKind("NodePool"))}
	if err := r.admin.Create(ctx, m); err != nil {
		t.Fatal(err)
	}
	for what, patch := range map[string]string{
		"without an owner": `{"metadata":{"ownerReferences":null}}`,
		"without a controller": fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"ingot.dev/v1alpha1","kind":"NodePool","name":"left","uid":"%s"}]}}`,
			p.UID),
	} {
		err := r.editor.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not use NodeType h100") {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The garbage collector does that for a pool that is deleted alone.
	if err := r.collector.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))); err != nil {
		t.Errorf("the garbage collector: %v", err)
	}
}

// testInstallation: what a Machine is installed with is changed by the manager alone.
func (r rights) testInstallation(t *testing.T) {
	ctx := t.Context()
	m := inTeam(machine("kept-", "h100"))
	if err := r.owner.Create(ctx, m); err != nil {
		t.Fatal(err)
	}
	patch := func(spec string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(spec)) }
	set := patch(`{"metadata":{"labels":{"ingot.dev/rollout":"r"}},"spec":{"revision":"h100-1","rendering":"h100-1-a"}}`)
	for name, c := range map[string]client.Client{"owner": r.owner, "chief": r.chief, "an administrator": r.admin} {
		if err := c.Patch(ctx, m.DeepCopy(), set); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only the manager changes spec.revision") {
			t.Errorf("%s sets the revision: %v", name, err)
		}
	}
	if err := r.manager.Patch(ctx, m, set); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]string{
		"spec.revision": `{"spec":{"revision":null,"rendering":null}}`, "spec.rendering": `{"spec":{"rendering":"h100-1-b"}}`, "ingot.dev/rollout": `{"metadata":{"labels":{"ingot.dev/rollout":null}}}`,
	} {
		if err := r.owner.Patch(ctx, m.DeepCopy(), patch(change)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "only the manager") {
			t.Errorf("the owner changes %s: %v", what, err)
		}
	}
	if err := r.owner.Patch(ctx, m.DeepCopy(), patch(`{"spec":{"powerOff":true}}`)); err != nil {
		t.Errorf("the owner asks for a power-off: %v", err)
	}
	pinned := inTeam(machine("pinned-", "h100"))
	pinned.Spec.Revision = "h100-0"
	if err := r.owner.Create(ctx, pinned.DeepCopy()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not create a Machine with spec.revision h100-0") {
		t.Errorf("the owner creates a Machine with a revision: %v", err)
	}
	if err := r.admin.Create(ctx, pinned); err != nil {
		t.Errorf("an administrator restores a Machine with its revision: %v", err)
	}
	marked := inTeam(machine("marked-", "h100"))
	marked.Labels = map[string]string{v1alpha1.LabelRollout: "h100-r1"}
	if err := r.owner.Create(ctx, marked.DeepCopy()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not create a Machine with the label ingot.dev/rollout") {
		t.Errorf("the owner creates a Machine that is a target of a Rollout: %v", err)
	}
	restored := marked.DeepCopy()
	restored.Spec.Revision = "h100-0"
	for _, m := range []*v1alpha1.Machine{marked, restored} {
		if err := r.admin.Create(ctx, m); err != nil {
			t.Errorf("an administrator restores a target of a Rollout, with revision %q: %v", m.Spec.Revision, err)
		}
	}
}
