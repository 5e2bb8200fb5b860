package machine_test

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// setError does what the host controller does with an error that lasts; nil: it is over.
func (r *rig) setError(name string, failed *v1alpha1.HostError) {
	r.t.Helper()
	h, record := r.host(name)
	before, beforeRecord := h.DeepCopy(), record.DeepCopy()
	record.Status.Error, h.Status.ErrorType, h.Status.ErrorMessage = failed, "", ""
	if failed != nil {
		h.Status.ErrorType, h.Status.ErrorMessage = metal3.ProvisioningError, failed.Reason+": "+failed.Message
	}
	if err := server.Client.Status().Patch(r.t.Context(), record, client.MergeFrom(beforeRecord)); err != nil {
		r.t.Fatal(err)
	}
	if err := server.Client.Status().Patch(r.t.Context(), h, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

func TestAMachineShowsInKindWhatTheBMCOfItsHostRefuses(t *testing.T) {
	r := newRig(t, 1)
	r.start()
	r.addMachine(r.namespace)
	r.awaitInstallation(1)
	const answer = "https://10.66.6.6/redfish/v1: BareMetalHost rival/b answers HTTP 412"
	for reason, kind := range map[string]string{
		v1alpha1.ReasonBMCConflict: "its BMC refuses what is asked of it", v1alpha1.ReasonBMCBusy: "its BMC cannot serve requests now", v1alpha1.ReasonBMCNotFound: "its BMC does not have the system",
		v1alpha1.ReasonBMCUnreachable: "its BMC does not answer", v1alpha1.ReasonBMCUnauthorized: "its BMC refuses the credentials", v1alpha1.ReasonSameServer: "another host is the same server",
	} {
		r.setError("server-00", &v1alpha1.HostError{Reason: reason, Message: answer})
		m := r.awaitReason(reason)
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionProvisioned} {
			if c := r.condition(r.namespace, condition); c.Reason != reason || !strings.Contains(c.Message, kind) || !strings.Contains(c.Message, "server-00") {
				t.Errorf("%s: %+v", condition, c)
			}
		}
		if !strings.Contains(m.Status.WaitingFor, kind) {
			t.Errorf("waits for %q", m.Status.WaitingFor)
		}
		r.setError("server-00", nil)
		management.Eventually(t, "the Machine goes on", func() bool {
			return r.condition(r.namespace, v1alpha1.ConditionReady).Reason == v1alpha1.ReasonProvisioning
		})
	}
	r.checkDiscretion("10.66.6.6", "rival")
	var told eventsv1.EventList
	if err := server.Client.List(t.Context(), &told, client.InNamespace(r.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, e := range told.Items {
		if e.Regarding.Kind == "Machine" && strings.HasPrefix(e.Reason, "BMC") {
			t.Errorf("the host's event is repeated at the Machine: %s", e.Note)
		}
	}
}
