package claims

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// sharedSite is a TenantCluster gpus and a namespace of a tenant there. One control plane is both clusters.
type sharedSite struct {
	t                        *testing.T
	namespace, tenant, admin string
}

func newSharedSite(t *testing.T, uid types.UID) sharedSite {
	t.Helper()
	s := sharedSite{t, server.Namespace(t), server.Namespace(t), server.KubeconfigFile(t)}
	server.Create(t, &v1alpha1.TenantCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "gpus"},
		Spec:       v1alpha1.TenantClusterSpec{KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}},
		Status:     v1alpha1.TenantClusterStatus{ClusterUID: uid},
	})
	return s
}

// run has an administrator of the management cluster ask, who reaches the shared cluster by another kubeconfig file.
func (s sharedSite) run(shared string, args ...string) (status int, stdout, stderr string) {
	return s.runAs(s.admin, shared, args...)
}

func (s sharedSite) runAs(kubeconfig, shared string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), Command(), append([]string{"gpus", "-n", s.namespace, "--kubeconfig", kubeconfig, "--shared-kubeconfig", shared}, args...), &out, &err)
	return status, out.String(), err.String()
}

// user returns the kubeconfig of somebody who may read Ingot's objects and the claims of the tenant, and nothing else.
func (s sharedSite) user(rules ...rbacv1.PolicyRule) string {
	s.t.Helper()
	name := "user-of-" + s.tenant
	rules = append(rules,
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"tenantclusters", "entitlements", "machines"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"list"}})
	for _, namespace := range []string{s.namespace, s.tenant} {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		server.Create(s.t, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})
	}
	config, err := clientcmd.LoadFromFile(s.admin)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = name
	}
	path := filepath.Join(s.t.TempDir(), "user.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// TestTheClaimsOfAnotherClusterAreNotTakenForThoseOfTheTenantCluster: the kubeconfig of the management cluster is easily given by mistake.
func TestTheClaimsOfAnotherClusterAreNotTakenForThoseOfTheTenantCluster(t *testing.T) {
	s := newSharedSite(t, "another")
	server.Create(t, claim(s.tenant, "of-another-cluster", "legal-h100", 1))
	status, out, stderr := s.run(s.admin)
	if status != cli.ExitFailed || out != "" || !strings.Contains(stderr, "--shared-kubeconfig reaches another cluster than TenantCluster "+s.namespace+"/gpus") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
}

func TestWhatACallerMayNotReadIsSaid(t *testing.T) {
	s := newSharedSite(t, "another")
	user := s.user()
	server.Create(t, claim(s.tenant, "waiting", "legal-h100", 1))
	status, out, stderr := s.runAs(user, user, "--claim-namespace", s.tenant)
	if status != cli.ExitOK || !strings.Contains(out, "waits for 1 ") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	for _, want := range []string{"you may not list hosts", "is not checked: you may not get the namespace kube-system", "you may not list pods"} {
		if !strings.Contains(stderr, "note: ") || !strings.Contains(stderr, want) {
			t.Errorf("%q is missing in %s", want, stderr)
		}
	}
}

func TestAnErrorOfTheSharedClusterSaysWhatHelps(t *testing.T) {
	s := newSharedSite(t, "")
	user := s.user()
	config, err := clientcmd.LoadFromFile(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://127.0.0.1:1"
	}
	nobody := filepath.Join(t.TempDir(), "nobody.kubeconfig")
	if err := clientcmd.WriteToFile(*config, nobody); err != nil {
		t.Fatal(err)
	}
	const narrower = "or name a --claim-namespace"
	for _, c := range []struct {
		name, shared string
		args         []string
		says         string
		isNarrower   bool
	}{
		{"all claims are forbidden", user, nil, "see that your user may do that there", true},
		{"those of the namespace are", user, []string{"--claim-namespace", "default"}, "see that your user may do that there", false},
		{"nobody answers", nobody, nil, "see that it runs, and that --shared-kubeconfig names the right one", false},
	} {
		status, _, stderr := s.run(c.shared, c.args...)
		if status != cli.ExitFailed || !strings.Contains(stderr, c.says) || strings.Contains(stderr, narrower) != c.isNarrower {
			t.Errorf("%s: status %d, %s", c.name, status, stderr)
		}
	}
}

func TestANamespaceWithoutClaimsIsNamed(t *testing.T) {
	s := newSharedSite(t, "")
	status, out, stderr := s.run(s.admin, "--claim-namespace", "nope")
	if status != cli.ExitOK || out != "" || !strings.Contains(stderr, "no ResourceClaims in namespace nope of the shared cluster") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	if status, out, stderr = s.run(s.admin, "--claim-namespace", "nope", "-o", "json"); status != cli.ExitOK || out != "[]\n" {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
}

// TestAClaimThatNoPodAsksForIsUnused: it is no shortage, and counts against the quota.
func TestAClaimThatNoPodAsksForIsUnused(t *testing.T) {
	s := newSharedSite(t, "")
	server.Create(t, claim(s.tenant, "forgotten", "legal-h100", 3), claim(s.tenant, "wanted", "legal-h100", 2),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.tenant, Name: "training"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "registry.example/none"}}, SchedulerName: "nobody",
			ResourceClaims: []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: ptr.To("wanted")}},
		}})
	status, out, stderr := s.run(s.admin, "--claim-namespace", s.tenant)
	if status != cli.ExitOK || !strings.Contains(out, "Unused, asks for 3") || !strings.Contains(out, "waits for 2") || strings.Index(out, "/forgotten ") < strings.Index(out, "/wanted ") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	_, out, stderr = s.run(s.admin, "--claim-namespace", s.tenant, "-o", "json")
	for _, want := range []string{`"reason": "Unused"`, `"reason": "Unallocated"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing: %s%s", want, out, stderr)
		}
	}
}
