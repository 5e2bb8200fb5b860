package host_test

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack"
)

func (r *rig) provisioned() *rack.Server {
	r.t.Helper()
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	return s
}

func TestADeletedHostIsKeptForItsMachineAndSaysSo(t *testing.T) {
	r := newRig(t, 1)
	s := r.provisioned()
	h, _, err := r.get(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	h, record := r.await(s, "the HostRecord says for whom it is kept", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		c := meta.FindStatusCondition(record.Status.Conditions, v1alpha1.ConditionUndeleted)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonKeptForMachine &&
			strings.Contains(c.Message, "kept for Machine team/node-1") && strings.Contains(c.Message, "kubectl delete machine -n team node-1")
	})
	eventually(t, "an event says so", func() bool { return r.told(s.Name(), v1alpha1.ReasonKeptForMachine) })
	if h.Status.Provisioning.State != metal3.StateProvisioned || h.Status.ErrorType != "" || record.Status.Installed == nil || s.State().Power != hardware.PowerOn {
		t.Errorf("its node does not run on: %+v, server %s", h.Status, s.State().Power)
	}
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	r.unassign(s)
	r.await(s, "its Machine has released it", inState(metal3.StateAvailable))
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.ConsumerRef = nil })
	eventually(t, "it is gone", func() bool { _, _, err := r.get(s); return apierrors.IsNotFound(err) })
}

func TestAHostWithoutItsBMCSecretSaysSoAndItsNodeRunsOn(t *testing.T) {
	r := newRig(t, 1)
	s := r.provisioned()
	h, _, err := r.get(s)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: r.meta(h.Spec.BMC.CredentialsName)}
	if err := server.Client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	h, _ = r.await(s, "it says so", func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) bool {
		return strings.HasPrefix(h.Status.ErrorMessage, v1alpha1.ReasonCredentialsMissing)
	})
	if h.Status.Provisioning.State != metal3.StateProvisioned || s.State().Power != hardware.PowerOn {
		t.Errorf("state %s, power %s", h.Status.Provisioning.State, s.State().Power)
	}
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	r.unassign(s)
	r.credentials(s, first(s.Credentials()), second(s.Credentials()))
	r.await(s, "the release goes on when the Secret is there again", inState(metal3.StateAvailable))
}

// TestALostHostRecordFreesNoHost: its finalizer was removed by force.
func TestALostHostRecordFreesNoHost(t *testing.T) {
	r := newRig(t, 1)
	s := r.provisioned()
	_, lost, err := r.get(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreNotFound(server.Client.Patch(t.Context(), lost, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))); err != nil {
		t.Fatal(err)
	}
	h, _ := r.await(s, "there is a new one, which knows of unknown content", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.UID != lost.UID && record.Status.LastTenant == "unknown"
	})
	if h.Status.Provisioning.State != metal3.StateProvisioned || s.State().Power != hardware.PowerOn {
		t.Errorf("state %s, power %s", h.Status.Provisioning.State, s.State().Power)
	}
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	r.unassign(s)
	_, record := r.await(s, "it is available", inState(metal3.StateAvailable))
	if e := record.Status.Erased; e == nil || e.Mode != v1alpha1.EraseMetadata {
		t.Errorf("it is available and was not erased: %+v", record.Status)
	}
}
