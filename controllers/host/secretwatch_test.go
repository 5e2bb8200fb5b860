package host_test

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack"
)

// TestAChangedSecretOfAHostShowsAtOnce: hosts at rest are observed only once an hour here, so that nothing but the change of the Secret has them reconciled.
func TestAChangedSecretOfAHostShowsAtOnce(t *testing.T) {
	r := newRigWith(t, 2, 0, func(r *rig) { r.timeouts.IdleInterval = time.Hour })
	free, used := r.rack.Servers()[0], r.rack.Servers()[1]
	r.available(free)
	r.available(used)
	r.claim(used, "m1", 1, v1alpha1.EraseMetadata)
	r.await(used, "it is provisioned", inState(metal3.StateProvisioned))
	within := func(what string, check func(*metal3.BareMetalHost) bool) {
		t.Helper()
		began := time.Now()
		for _, s := range []*rack.Server{free, used} {
			r.await(s, what, func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) bool {
				if time.Since(began) > 10*time.Second {
					t.Fatalf("%s: not within 10 s for %s: %s", what, s.Name(), h.Status.ErrorMessage)
				}
				return check(h)
			})
		}
	}
	says := func(reason string) func(*metal3.BareMetalHost) bool {
		return func(h *metal3.BareMetalHost) bool { return strings.HasPrefix(h.Status.ErrorMessage, reason) }
	}
	correct := func() {
		for _, s := range []*rack.Server{free, used} {
			r.credentials(s, first(s.Credentials()), second(s.Credentials()))
		}
		within("the correction shows", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType == "" })
	}
	for _, s := range []*rack.Server{free, used} {
		r.credentials(s, first(s.Credentials()), "wrong")
	}
	within("a wrong password shows", says("BMCUnauthorized"))
	if used.State().Power != hardware.PowerOn {
		t.Errorf("a wrong password has switched the server in use: %s", used.State().Power)
	}
	correct()
	for _, s := range []*rack.Server{free, used} {
		if err := server.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: r.meta(s.Name() + "-bmc")}); err != nil {
			t.Fatal(err)
		}
	}
	within("a Secret that is gone shows", says(v1alpha1.ReasonCredentialsMissing))
	correct()
	ca := &corev1.Secret{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "bmc-ca"}, ca); err != nil {
		t.Fatal(err)
	}
	ca.Data = nil
	if err := server.Client.Update(t.Context(), ca); err != nil {
		t.Fatal(err)
	}
	within("an authority that is missing shows", says(v1alpha1.ReasonCABundleMissing))
}
