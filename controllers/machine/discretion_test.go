package machine_test

import (
	"encoding/json"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// checkDiscretion searches all that a tenant may read, which are the Machines, the NodePools, the TenantClusters and the events about them, for texts
// that are for those who may read hosts.
func (r *rig) checkDiscretion(secrets ...string) {
	r.t.Helper()
	var machines v1alpha1.MachineList
	var pools v1alpha1.NodePoolList
	var tenants v1alpha1.TenantClusterList
	var events eventsv1.EventList
	for _, l := range []client.ObjectList{&machines, &pools, &tenants, &events} {
		if err := server.Client.List(r.t.Context(), l, client.InNamespace(r.namespace)); err != nil {
			r.t.Fatal(err)
		}
	}
	texts := []any{machines.Items, pools.Items, tenants.Items}
	for _, e := range events.Items {
		if e.Regarding.Kind != "BareMetalHost" && e.Regarding.Kind != "HostRecord" {
			texts = append(texts, e)
		}
	}
	for _, o := range texts {
		text, err := json.Marshal(o)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, secret := range secrets {
			if strings.Contains(string(text), secret) {
				r.t.Errorf("%q is in %s", secret, text)
			}
		}
	}
}

func TestAMachineWithoutAHostTellsCountsAndNothingAboutOtherTenants(t *testing.T) {
	r := newRig(t, 7)
	change := func(name string, of func(*metal3.BareMetalHost, *v1alpha1.HostRecord)) {
		t.Helper()
		h, record := r.host(name)
		before, beforeRecord := h.DeepCopy(), record.DeepCopy()
		of(h, record)
		status, recordStatus := h.Status, record.Status
		if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		if err := server.Client.Patch(t.Context(), record, client.MergeFrom(beforeRecord)); err != nil {
			t.Fatal(err)
		}
		h.Status, record.Status = status, recordStatus
		if err := server.Client.Status().Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		if err := server.Client.Status().Patch(t.Context(), record, client.MergeFrom(beforeRecord)); err != nil {
			t.Fatal(err)
		}
	}
	rival := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: "rival", Name: "training-1", UID: "u"}
	for _, name := range []string{"server-00", "server-01"} {
		change(name, func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) { h.Spec.ConsumerRef = rival })
	}
	change("server-02", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) {
		h.Spec.BMC.Address = "redfish://10.66.6.6/redfish/v1"
		h.Status.ErrorType, h.Status.ErrorMessage, h.Status.OperationalStatus = metal3.PowerManagementError, "BMCUnreachable: https://10.66.6.6: no answer", metal3.OperationalStatusError
		record.Status.Error = &v1alpha1.HostError{Reason: "BMCUnreachable", Message: "https://10.66.6.6: no answer"}
	})
	change("server-03", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) {
		record.Status.LastTenant = "rival/training"
	})
	change("server-04", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) {
		record.Spec.Machine = &v1alpha1.MachineReference{Namespace: "rival", Name: "training-2", UID: "u2"}
	})
	change("server-05", func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) { h.Labels["rack"] = "rival" })
	change("server-06", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) {
		record.Status.Wanted = &v1alpha1.WantedAttempt{Number: 1, Since: metav1.NowMicro(), Deadline: metav1.NowMicro(), Operation: "Erase", Outcome: v1alpha1.AttemptFailed, Reason: "DiskError", Message: "10.66.6.6 says that sda of rival failed"}
	})
	r.start()
	r.addMachine(r.namespace)
	m := r.awaitReason(v1alpha1.ReasonNoHostAvailable)
	const want = "no host can be claimed; 7 hosts: 2 taken, 1 in error, 1 not erased since another tenant, 1 still being given back, 1 waiting for an erase, " +
		"1 without the labels that the NodeType selects"
	for _, condition := range []string{v1alpha1.ConditionClaimed, v1alpha1.ConditionReady} {
		if c := r.condition(m.Name, condition); c.Message != want {
			t.Errorf("%s: %s", condition, c.Message)
		}
	}
	r.checkDiscretion("10.66.6.6", "rival")
}

func TestAMachineWhoseHostIsTakenAwayDoesNotTellByWhom(t *testing.T) {
	r := newRig(t, 1)
	r.start()
	r.addMachine(r.namespace)
	r.awaitInstallation(1)
	h, record := r.host("server-00")
	before := record.DeepCopy()
	record.Status.Wanted = &v1alpha1.WantedAttempt{
		Number: 1, Since: metav1.NowMicro(), Deadline: metav1.NowMicro(), Operation: "Install", Outcome: v1alpha1.AttemptFailed, Reason: "BootLoop", Step: "Booting", Message: "10.66.6.6 asked again, as did the server of rival/training",
		MachineUID: record.Spec.Machine.UID, MachineAttempt: 1,
	}
	if err := server.Client.Status().Patch(t.Context(), record, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.awaitReason("BootLoop")
	beforeHost := h.DeepCopy()
	h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: "rival", Name: "training-1", UID: "u"}
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(beforeHost)); err != nil {
		t.Fatal(err)
	}
	r.awaitReason(v1alpha1.ReasonHostLost)
	r.checkDiscretion("10.66.6.6", "rival")
}
