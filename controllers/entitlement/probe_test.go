package entitlement

import (
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/cluster"
)

// TestEnforcedMeansThatAClaimWasRefused tries a claim at once, without waiting for the API server to use the policy.
func TestEnforcedMeansThatAClaimWasRefused(t *testing.T) {
	r := newRig(t)
	r.entitle()
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	if err := r.try(exactly("gpu.nvidia.com")); err == nil {
		t.Error("a claim gets in although the Entitlement says that it is enforced")
	}
}

// TestWithoutANamespaceNothingIsProved has a namespace that is misspelled, or that is made later.
func TestWithoutANamespaceNothingIsProved(t *testing.T) {
	r := newRig(t)
	later := r.tenant + "-later"
	server.Create(t, &v1alpha1.Entitlement{ObjectMeta: r.meta("legal"), Spec: v1alpha1.EntitlementSpec{
		TenantClusterRef: v1alpha1.LocalReference{Name: "shared"}, Tenant: r.tenant, Namespaces: v1alpha1.TenantNamespaces{Names: []string{later}},
	}})
	r.start(server.Cluster.Kubeconfig())
	message := r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonNoNamespace)
	if !strings.Contains(message, "no namespace of the shared cluster is named "+later) {
		t.Error(message)
	}
	e := r.read("legal")
	for _, name := range []string{v1alpha1.ConditionEnforced, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(e.Status.Conditions, name); c.Status != metav1.ConditionUnknown {
			t.Errorf("%s is %s: %s", name, c.Status, c.Message)
		}
	}
	if len(r.objects("legal")) != 4 {
		t.Errorf("a namespace that is made later is not fenced at once: there are %v", r.objects("legal"))
	}
	server.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: later}})
	r.nudge()
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	r.change(func(e *v1alpha1.Entitlement) { e.Spec.Namespaces.Names = []string{later, "misspelled"} })
	if message := r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced); !strings.Contains(message, "it has none named misspelled") {
		t.Errorf("one of two names is misspelled, and that is not said: %s", message)
	}
}

// startCluster starts a shared cluster whose API server has the flag, with the tenant's namespace.
func (r *rig) startCluster(flag string) (*cluster.Cluster, client.Client) {
	r.t.Helper()
	shared, err := cluster.Start(r.t.Context(), cluster.Options{Dir: r.t.TempDir(), Args: []string{"--apiserver-arg=" + flag}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := shared.Stop(); err != nil {
			r.t.Error(err)
		}
	})
	config, err := shared.RESTConfig()
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: server.Scheme})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := c.Create(r.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.tenant}}); err != nil {
		r.t.Fatal(err)
	}
	return shared, c
}

func TestAServerThatRefusesNothingIsNotEnforced(t *testing.T) {
	r := newRig(t)
	shared, c := r.startCluster("--disable-admission-plugins=ValidatingAdmissionPolicy")
	r.entitle()
	r.start(shared.Kubeconfig())
	message := r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonNotRefused)
	if !strings.HasPrefix(message, "NOT ENFORCED: as a dry run, the shared cluster took a claim") || !strings.Contains(message, "admission plugin ValidatingAdmissionPolicy is on") {
		t.Error(message)
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	if err := c.List(t.Context(), &policies); err != nil || len(policies.Items) != 2 {
		t.Errorf("%d policies are there: %v", len(policies.Items), err)
	}
}

func TestOnlyThePolicysOwnRefusalIsProof(t *testing.T) {
	e := &v1alpha1.Entitlement{Spec: v1alpha1.EntitlementSpec{Tenant: "legal"}}
	claims := schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
	forbidden := func(why string) error { return apierrors.NewForbidden(claims, "ingot-probe-1", errors.New(why)) }
	terminating := forbidden("it is being terminated")
	var status *apierrors.StatusError
	if !errors.As(terminating, &status) {
		t.Fatal(terminating)
	}
	status.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	const policy = "resourceclaims \"a\" is forbidden: ValidatingAdmissionPolicy 'ingot-claims-legal' with binding 'ingot-claims-legal' denied request"
	for _, c := range []struct {
		name, reason, says string
		err                error
	}{
		{"the policy", "", "", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422, Message: policy}}},
		{"somebody quotes the policy", v1alpha1.ReasonTenantUnreachable, "try a claim", errors.New(policy)},
		{"the policy, by another version", "", "", forbidden("ValidatingAdmissionPolicy 'ingot-claims-legal' with binding 'ingot-claims-legal' denied request: claims of tenant legal may name only these")},
		{"it is taken", v1alpha1.ReasonNotRefused, "admission plugin ValidatingAdmissionPolicy is on", nil},
		{"another tenant's policy", v1alpha1.ReasonNotRefused, "refused by something else", forbidden("ValidatingAdmissionPolicy 'ingot-claims-legal-2' with binding 'ingot-claims-legal-2' denied request")},
		{"a webhook", v1alpha1.ReasonNotRefused, "refused by something else", forbidden("admission webhook a.example.com denied the request")},
		{"a right is missing", v1alpha1.ReasonEntitlementRightsMissing, "ingot tenant add", forbidden(`User "ingot" cannot create resource "resourceclaims" in API group "resource.k8s.io" in the namespace "legal"`)},
		{"the namespace leaves", v1alpha1.ReasonTenantUnreachable, "try a claim", terminating},
		{"the server is away", v1alpha1.ReasonTenantUnreachable, "connection refused", errors.New("connection refused")},
		{"the server is busy", v1alpha1.ReasonTenantUnreachable, "try a claim", apierrors.NewTooManyRequests("later", 1)},
	} {
		p := judgeProbe(c.err, e, "legal", false)
		switch {
		case p == nil && c.reason != "" || p != nil && c.reason == "":
			t.Errorf("%s: %+v", c.name, p)
		case p != nil && (p.reason != c.reason || !strings.Contains(p.message, c.says)):
			t.Errorf("%s: %s: %s", c.name, p.reason, p.message)
		}
	}
	if p := judgeProbe(nil, e, "legal", true); p.reason != v1alpha1.ReasonNotProvedYet || p.status != metav1.ConditionUnknown || p.again != time.Second {
		t.Errorf("a claim that a server takes before it uses the policy: %+v", p)
	}
}
