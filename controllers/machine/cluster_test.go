package machine_test

import (
	"net/http"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/test/management"
)

// TestAMetal3HostGoesBackToItsTenantWhileTheClusterIsNotKnown claims hosts that an earlier version claimed: it wrote "unknown" where the kubeconfig may not
// read which cluster it is, and not when it claimed the host.
func TestAMetal3HostGoesBackToItsTenantWhileTheClusterIsNotKnown(t *testing.T) {
	r := newRig(t, 2)
	r.serveMetal3()
	r.tenantWrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			if strings.HasSuffix(q.URL.Path, "/namespaces/kube-system") {
				return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: q}, nil
			}
			return next.RoundTrip(q)
		})
	}
	tenant := &v1alpha1.TenantCluster{}
	if err := server.Client.Get(t.Context(), r.tenant, tenant); err != nil {
		t.Fatal(err)
	}
	for name, uid := range map[string]types.UID{"server-00": "another", "server-01": tenant.UID} {
		r.editHost(name, func(h *metal3.BareMetalHost) {
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, placement.AnnotationLastTenant, r.tenant.String())
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, placement.AnnotationLastTenantUID, string(uid))
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, placement.AnnotationLastTenantClusterUID, placement.UnknownCluster)
		})
		if err := server.Client.Delete(t.Context(), &v1alpha1.HostRecord{ObjectMeta: r.meta(name)}); err != nil {
			t.Fatal(err)
		}
	}
	r.start()
	r.addMachine("a")
	management.Eventually(t, "the host that this TenantCluster had is installed", func() bool { return r.bareHost("server-01").Spec.Image != nil })
	h := r.bareHost("server-01")
	if uid := h.Annotations[placement.AnnotationLastTenantUID]; uid != string(tenant.UID) {
		t.Errorf("the TenantCluster is %q", uid)
	}
	if uid, isSet := h.Annotations[placement.AnnotationLastTenantClusterUID]; isSet {
		t.Errorf("the cluster is %q", uid)
	}
	r.addMachine(r.namespace)
	r.awaitReason(v1alpha1.ReasonNoHostAvailable)
	if c := r.condition(r.namespace, v1alpha1.ConditionClaimed); !strings.Contains(c.Message, "1 not erased since a tenant of that name whose cluster is not known") {
		t.Error(c.Message)
	}
}

func (r *rig) bareHost(name string) *metal3.BareMetalHost {
	r.t.Helper()
	h := &metal3.BareMetalHost{}
	if err := server.Client.Get(r.t.Context(), r.key(name), h); err != nil {
		r.t.Fatal(err)
	}
	return h
}
