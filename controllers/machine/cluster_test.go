package machine_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// TestAReadyMachineSaysThatItsTenantCannotBeUsed: it stays Ready, so that no rollout and no pool counts it as lost, and its column and its reason say that it is not
// seen meanwhile.
func TestAReadyMachineSaysThatItsTenantCannotBeUsed(t *testing.T) {
	r := newRig(t, 1)
	var isDown atomic.Bool
	r.tenantProbes = 100 * time.Millisecond
	r.tenantWrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			if isDown.Load() {
				return nil, errors.New("no route to host")
			}
			return next.RoundTrip(q)
		})
	}
	r.start()
	r.addMachine(r.namespace)
	r.awaitInstallation(1)
	r.install(r.namespace, 1)
	says := func(reason, waitingFor string) func() bool {
		return func() bool {
			c := r.condition(r.namespace, v1alpha1.ConditionReady)
			return c.Status == metav1.ConditionTrue && c.Reason == reason && r.machine(r.namespace).Status.WaitingFor == waitingFor
		}
	}
	management.Eventually(t, "it is Ready", says(v1alpha1.ReasonReady, ""))
	isDown.Store(true)
	management.Eventually(t, "it says that its tenant cannot be used", says(v1alpha1.ReasonWaitingForTenant, "the API server of TenantCluster "+r.tenant.String()))
	if c, m := r.condition(r.namespace, v1alpha1.ConditionReady), r.machine(r.namespace); m.Status.Phase != v1alpha1.MachineReady || strings.Contains(c.Message, "no route") ||
		!strings.Contains(c.Message, "TenantUnreachable: its condition Ready says more") {
		t.Errorf("%s: %s", m.Status.Phase, c.Message)
	}
	isDown.Store(false)
	management.Eventually(t, "it is Ready as before", says(v1alpha1.ReasonReady, ""))
}
