package machine_test

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
	"github.com/ingot-dev/ingot/test/management"
)

// installed starts the controller and returns a Machine whose image is on server-00.
func (r *rig) installed(name string) *v1alpha1.Machine {
	r.t.Helper()
	r.start()
	r.addMachine(name)
	management.Eventually(r.t, "the installation is asked for", func() bool { h, _ := r.host("server-00"); return h.Spec.Image != nil })
	r.play("server-00")
	r.play("server-00")
	return r.machine(name)
}

// abandon removes the Machine as somebody with the verb abandon does: without its release.
func (r *rig) abandon(m *v1alpha1.Machine) {
	r.t.Helper()
	for _, change := range []func() error{
		func() error {
			return server.Client.Patch(r.t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null,"annotations":{"ingot.dev/abandon":"server-00"}}}`)))
		},
		func() error { return server.Client.Delete(r.t.Context(), m) },
	} {
		if err := change(); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) editHost(name string, change func(*metal3.BareMetalHost)) {
	r.t.Helper()
	h, _ := r.host(name)
	before := h.DeepCopy()
	change(h)
	if err := server.Client.Patch(r.t.Context(), h, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) awaitReport(uid, other types.UID) {
	r.t.Helper()
	management.Eventually(r.t, "the HostRecord says that the Machine is gone", func() bool {
		_, record := r.host("server-00")
		g := record.Spec.MachineGone
		return g != nil && g.UID == uid && g.OtherUID == other
	})
}

func TestAHostWhoseMachineIsGoneRunsOnUntilItIsReleased(t *testing.T) {
	r := newRig(t, 1)
	m := r.installed("one")
	r.abandon(m)
	r.awaitReport(m.UID, "")
	h, record := r.host("server-00")
	if h.Spec.ConsumerRef == nil || h.Spec.Image == nil || !h.Spec.Online || record.Spec.Machine == nil || record.Spec.Erase != v1alpha1.EraseMetadata {
		t.Errorf("it is not left as it was: %+v, its record %+v", h.Spec, record.Spec)
	}
	// A value for another Machine, such as one that was gone before, releases nothing.
	r.editHost("server-00", func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{v1alpha1.AnnotationRelease: "another"}
	})
	r.editHost("server-00", func(h *metal3.BareMetalHost) { h.Labels["seen"] = "yes" })
	if h, _ := r.host("server-00"); h.Spec.Image == nil {
		t.Error("it was released for another Machine's uid")
	}
	r.editHost("server-00", func(h *metal3.BareMetalHost) { h.Annotations[v1alpha1.AnnotationRelease] = string(m.UID) })
	management.Eventually(t, "the host is deprovisioned", func() bool { h, _ := r.host("server-00"); return h.Spec.Image == nil && !h.Spec.Online })
	r.play("server-00")
	h, record = r.host("server-00")
	if h.Status.Provisioning.State != metal3.StateDeprovisioning || h.Spec.ConsumerRef == nil || record.Spec.Machine == nil || record.Spec.Erase != v1alpha1.EraseMetadata {
		t.Errorf("before the erase has ended it must be claimed, with the erase that its Machine asked for: %s, %+v", h.Status.Provisioning.State, record.Spec)
	}
	r.play("server-00")
	management.Eventually(t, "the host is free", func() bool { h, _ := r.host("server-00"); return h.Spec.ConsumerRef == nil })
	h, record = r.host("server-00")
	if record.Spec.Machine != nil || record.Spec.MachineGone != nil || h.Annotations[v1alpha1.AnnotationRelease] != "" {
		t.Errorf("of the claim remain %+v and the annotations %v", record.Spec, h.Annotations)
	}
	if err := server.Client.Get(t.Context(), r.key("server-00-claim"), &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the claim Secret remains: %v", err)
	}
	r.addMachine("two")
	management.Eventually(t, "the next Machine claims the host", func() bool {
		h, _ := r.host("server-00")
		return h.Spec.ConsumerRef != nil && h.Spec.ConsumerRef.Name == "two" && h.Spec.Image != nil
	})
}

// A backup that is restored object by object gives every object a new uid. The Machines are there again, with the names that the hosts know
// and other uids, and they have no status.
func TestAfterARestoreWithNewUIDsNoMachineTakesASecondServer(t *testing.T) {
	r := newRig(t, 1)
	first := r.installed("one")
	r.addHost("server-01")
	r.abandon(first)
	r.addMachine("one")
	second := r.machine("one")
	r.awaitReport(first.UID, second.UID)
	management.Eventually(t, "the Machine says which host is the earlier one's", func() bool {
		claimed := meta.FindStatusCondition(r.machine("one").Status.Conditions, v1alpha1.ConditionClaimed)
		return claimed != nil && claimed.Reason == v1alpha1.ReasonHostOrphaned && strings.Contains(claimed.Message, "server-00")
	})
	h, _ := r.host("server-00")
	other, _ := r.host("server-01")
	if h.Spec.ConsumerRef.UID != first.UID || h.Spec.Image == nil || !h.Spec.Online || other.Spec.ConsumerRef != nil {
		t.Errorf("the server that runs has %+v, the free one is claimed by %v", h.Spec, other.Spec.ConsumerRef)
	}
	r.editHost("server-00", func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{v1alpha1.AnnotationRelease: string(first.UID)}
	})
	management.Eventually(t, "the server is released, and the Machine goes on", func() bool {
		r.play("server-00")
		return r.machine("one").Status.HostRef != nil
	})
}

// A restore of the store keeps the uids, so a Machine that was reported is there again.
func TestAReportIsWithdrawnWhenTheMachineIsThere(t *testing.T) {
	r := newRig(t, 1)
	m := r.installed("one")
	_, record := r.host("server-00")
	before := record.DeepCopy()
	record.Spec.MachineGone = &v1alpha1.MachineGone{UID: m.UID, Since: metav1.NowMicro()}
	if err := server.Client.Patch(t.Context(), record, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the report is withdrawn", func() bool { _, record := r.host("server-00"); return record.Spec.MachineGone == nil })
	if _, record := r.host("server-00"); record.Spec.Machine == nil || record.Spec.Machine.UID != m.UID {
		t.Errorf("the rest of the record is not kept: %+v", record.Spec)
	}
}
