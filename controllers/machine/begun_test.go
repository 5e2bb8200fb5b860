package machine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

func TestARollIsCalledOffByTheStatusFieldWhateverTheConditionSays(t *testing.T) {
	for _, c := range []struct {
		name      string
		requested bool
		reason    string
		attempt   int64
	}{
		{"the power-off is begun and its condition was lost", true, "", 2},
		{"the power-off is not begun and a condition says that it is", false, v1alpha1.ReasonPoweringOff, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 1)
			m := r.interrupted(v1alpha1.MachineDraining)
			r.setStatus(m, func(s *v1alpha1.MachineStatus) {
				if c.requested {
					s.PowerOffRequestedAt = &metav1.MicroTime{Time: time.Now()}
				}
				if c.reason != "" {
					s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: c.reason, LastTransitionTime: metav1.Now()}}
				}
			})
			r.start()
			if c.attempt == 1 {
				management.Eventually(t, "the Machine is Validating, its Node uncordoned", func() bool {
					return r.machine(m.Name).Status.Phase == v1alpha1.MachineValidating && !r.node(m.Name).Spec.Unschedulable
				})
			} else {
				management.Eventually(t, "the host is asked to power off", func() bool { h, _ := r.host("server-00"); return !h.Spec.Online })
				r.play("server-00")
				r.awaitInstallation(2)
			}
			h, _ := r.host("server-00")
			if s := r.machine(m.Name).Status; s.Attempt != c.attempt || s.PowerOffRequestedAt != nil || !h.Spec.Online {
				t.Errorf("attempt %d, power-off requested at %v, host online %v", s.Attempt, s.PowerOffRequestedAt, h.Spec.Online)
			}
		})
	}
}

func TestARemainingNodeIsReportedOnceWhateverTheConditionSays(t *testing.T) {
	for _, c := range []struct {
		name     string
		reported bool
		reason   string
		events   int
	}{
		{"it is reported and the condition was lost", true, "", 0},
		{"it is not reported and a condition says that it is", false, v1alpha1.ReasonNodeRemains, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 1)
			m := r.interrupted(v1alpha1.MachineReleasing)
			h, _ := r.host("server-00")
			before := h.DeepCopy()
			h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Person", Name: "eve", UID: "eve"}
			if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			r.setStatus(m, func(s *v1alpha1.MachineStatus) {
				if c.reported {
					s.NodeRemainsReportedAt = &metav1.MicroTime{Time: time.Now()}
				}
				if c.reason != "" {
					s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: c.reason, LastTransitionTime: metav1.Now()}}
				}
			})
			if err := server.Client.Delete(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			r.start()
			management.Eventually(t, "the Machine is gone", func() bool { return r.machine(m.Name).UID == "" })
			seen := 0
			if c.events > 0 {
				management.Eventually(t, "the remaining Node is reported", func() bool { seen = len(r.events(v1alpha1.ReasonNodeRemains)); return seen > 0 })
			} else {
				time.Sleep(2 * time.Second) // an event that was sent would be there
				seen = len(r.events(v1alpha1.ReasonNodeRemains))
			}
			if seen != c.events {
				t.Errorf("the remaining Node was reported %d times, expected %d", seen, c.events)
			}
		})
	}
}

// interrupted is a Machine with a host and a Node, whose manager was stopped in that phase. It is named as the namespace, since
// its Node is of the whole cluster.
func (r *rig) interrupted(phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	r.t.Helper()
	object := r.meta(r.namespace)
	object.Finalizers = []string{v1alpha1.MachineFinalizer}
	now := metav1.NowMicro()
	m := &v1alpha1.Machine{ObjectMeta: object, Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: r.namespace}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Revision: r.namespace + "-1",
	}}
	server.Create(r.t, m)
	h, record := r.host("server-00")
	before, beforeRecord := h.DeepCopy(), record.DeepCopy()
	h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: m.Namespace, Name: m.Name, UID: m.UID}
	h.Spec.Online, h.Spec.Image = true, &metal3.Image{URL: "http://127.0.0.1/image-1.raw.zst"}
	record.Spec = v1alpha1.HostRecordSpec{
		Machine: &v1alpha1.MachineReference{Namespace: m.Namespace, Name: m.Name, UID: m.UID}, Tenant: r.tenant.String(), Revision: r.namespace + "-1", Attempt: 1,
		Image: &v1alpha1.ExactImage{URL: h.Spec.Image.URL, Checksum: "sha256:01", Format: v1alpha1.FormatRawZstd}, Erase: v1alpha1.EraseMetadata,
	}
	for object, old := range map[client.Object]client.Object{h: before, record: beforeRecord} {
		if err := server.Client.Patch(r.t.Context(), object, client.MergeFrom(old)); err != nil {
			r.t.Fatal(err)
		}
	}
	r.play("server-00") // Provisioning
	r.play("server-00") // Provisioned
	node := &corev1.Node{ObjectMeta: r.global(), Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("ingot://%s/1", m.UID), Unschedulable: true}}
	node.Annotations = map[string]string{v1alpha1.AnnotationCordoned: "true"}
	server.Create(r.t, node)
	r.t.Cleanup(func() {
		if err := client.IgnoreNotFound(server.Client.Delete(context.Background(), node)); err != nil {
			r.t.Error(err)
		}
	})
	r.setStatus(m, func(s *v1alpha1.MachineStatus) {
		s.Phase, s.Revision, s.Rendering, s.Attempt = phase, r.namespace+"-1", r.namespace+"-1-made", 1
		s.HostRef = &v1alpha1.NamespacedReference{Namespace: r.namespace, Name: "server-00"}
		s.NodeRef = &v1alpha1.NodeReference{Name: node.Name, UID: node.UID}
		s.Timeline = []v1alpha1.PhaseEntry{{Phase: v1alpha1.MachineReady, At: now}, {Phase: phase, At: now}}
	})
	return m
}

func (r *rig) setStatus(m *v1alpha1.Machine, change func(*v1alpha1.MachineStatus)) {
	r.t.Helper()
	before := m.DeepCopy()
	change(&m.Status)
	if err := server.Client.Status().Patch(r.t.Context(), m, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}
