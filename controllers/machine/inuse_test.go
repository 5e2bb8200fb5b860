package machine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

func (r *rig) patch(o client.Object, change string) {
	r.t.Helper()
	if err := server.Client.Patch(r.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		r.t.Fatal(err)
	}
}

// quickDrain makes a release wait for a tenant that cannot be reached for a moment only.
func (r *rig) quickDrain() {
	r.patch(&v1alpha1.NodeType{ObjectMeta: r.global()}, `{"spec":{"rollout":{"drain":{"timeout":"10ms"}}}}`)
}

// TestAMachineIsReleasedWhateverItReferredToIsGone: what is gone went without its finalizer, by force.
func TestAMachineIsReleasedWhateverItReferredToIsGone(t *testing.T) {
	for name, gone := range map[string]func(*rig) []client.Object{
		"NodeType": func(r *rig) []client.Object { return []client.Object{&v1alpha1.NodeType{ObjectMeta: r.global()}} },
		"OSImage": func(r *rig) []client.Object {
			return []client.Object{&v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-1"}}}
		},
		"NodeTypeRevision and NodeTypeRendering": func(r *rig) []client.Object {
			return []client.Object{
				&v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-1"}}, &v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-1-made"}},
			}
		},
		"NodeProvider": func(r *rig) []client.Object { return []client.Object{&v1alpha1.NodeProvider{ObjectMeta: r.global()}} },
		"claim Secret": func(r *rig) []client.Object {
			return []client.Object{&corev1.Secret{ObjectMeta: r.meta("server-00-claim")}}
		},
		"TenantCluster": func(r *rig) []client.Object {
			return []client.Object{&v1alpha1.TenantCluster{ObjectMeta: r.meta("research")}}
		},
		"everything": func(r *rig) []client.Object {
			return []client.Object{
				&v1alpha1.NodeType{ObjectMeta: r.global()}, &v1alpha1.NodeProvider{ObjectMeta: r.global()}, &corev1.Secret{ObjectMeta: r.meta("server-00-claim")},
				&v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-1"}}, &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-1"}},
				&v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-1-made"}},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			r.quickDrain()
			m := r.installed("one")
			for _, o := range gone(r) {
				if err := server.Client.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			if err := server.Client.Delete(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if name == "NodeProvider" {
				management.Eventually(t, "it says that nobody drives the BMC", func() bool {
					c := r.condition("one", v1alpha1.ConditionReady)
					return c.Reason == v1alpha1.ReasonProviderNotFound && strings.Contains(c.Message, "create it again with spec.hostNamespace: "+r.namespace)
				})
			}
			erase := v1alpha1.EraseMode("")
			management.Eventually(t, "the Machine is gone", func() bool {
				if _, record := r.host("server-00"); record.Spec.Machine != nil {
					erase = record.Spec.Erase
				}
				r.play("server-00")
				return r.machine("one").UID == ""
			})
			h, record := r.host("server-00")
			if h.Spec.ConsumerRef != nil || h.Spec.Online || record.Spec.Machine != nil || record.Status.Installed != nil || erase != v1alpha1.EraseMetadata {
				t.Errorf("the host keeps %+v, its record %+v, erased %q", h.Spec, record.Spec, erase)
			}
		})
	}
}

// TestAMachineIsOfTheProviderOfItsHost: the NodeType has got another providerRef and another hostSelector since the claim.
func TestAMachineIsOfTheProviderOfItsHost(t *testing.T) {
	r := newRig(t, 1)
	m := r.installed("one")
	next := r.addRevision(2, "1.37.0")
	other := &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: r.namespace + "-other"}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: r.namespace + "-other", Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "127.0.0.1"}}, Erase: &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseNone},
	}}
	server.Create(t, other)
	r.patch(&v1alpha1.NodeType{ObjectMeta: r.global()}, `{"spec":{"providerRef":{"name":"`+other.Name+`"},"hostSelector":{"matchLabels":{"rack":"other"}}}}`)
	r.patch(m, `{"spec":{"revision":"`+next+`","rendering":"`+next+`-made"}}`)
	management.Eventually(t, "it is rolled", func() bool {
		if _, record := r.host("server-00"); record.Spec.Attempt == 2 {
			return true
		}
		r.play("server-00")
		return false
	})
	h, record := r.host("server-00")
	if record.Spec.Erase != v1alpha1.EraseMetadata || h.Spec.ConsumerRef == nil || h.Spec.ConsumerRef.UID != m.UID {
		t.Errorf("the record asks for erase %s, the host is %+v's", record.Spec.Erase, h.Spec.ConsumerRef)
	}
}

func TestAMachineOfANodeTypeThatIsBeingDeletedClaimsNoHostAndTheOthersGoOn(t *testing.T) {
	r := newRig(t, 1)
	m := r.installed("one")
	r.addHost("server-01")
	next := r.addRevision(2, "1.37.0")
	nodeType := &v1alpha1.NodeType{ObjectMeta: r.global()}
	r.patch(nodeType, `{"metadata":{"finalizers":["ingot.dev/in-use"]}}`)
	t.Cleanup(func() { r.patchLate(nodeType, `{"metadata":{"finalizers":null}}`) })
	if err := server.Client.Delete(t.Context(), nodeType.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	r.addMachine("two")
	management.Eventually(t, "the second says why it claims none", func() bool {
		c := r.condition("two", v1alpha1.ConditionReady)
		return c.Reason == v1alpha1.ReasonWaitingForNodeType && strings.Contains(c.Message, "is being deleted and takes no further Machines")
	})
	r.patch(m, `{"spec":{"revision":"`+next+`","rendering":"`+next+`-made"}}`)
	management.Eventually(t, "the first is rolled", func() bool {
		if _, record := r.host(m.Status.HostRef.Name); record.Spec.Attempt == 2 {
			return true
		}
		r.play(m.Status.HostRef.Name)
		return false
	})
	if ref := r.machine("two").Status.HostRef; ref != nil {
		t.Errorf("the second claims %v", ref)
	}
}

// patchLate is for cleanups, which come after the test's context has ended.
func (r *rig) patchLate(o client.Object, change string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := client.IgnoreNotFound(server.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(change)))); err != nil {
		r.t.Error(err)
	}
}

func TestAMachineSaysThatItsDeletedHostIsKeptForIt(t *testing.T) {
	r := newRig(t, 1)
	r.installed("one")
	r.editHost("server-00", func(h *metal3.BareMetalHost) { h.Finalizers = []string{v1alpha1.HostFinalizer} })
	h, _ := r.host("server-00")
	t.Cleanup(func() { r.patchLate(h, `{"metadata":{"finalizers":null}}`) })
	if err := server.Client.Delete(t.Context(), h.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	way := "is being deleted and kept for Machine " + r.namespace + "/one"
	management.Eventually(t, "the condition says so", func() bool {
		c := r.condition("one", v1alpha1.ConditionClaimed)
		return c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonKeptForMachine && strings.Contains(c.Message, way) && strings.Contains(c.Message, "kubectl delete machine -n "+r.namespace+" one")
	})
	management.Eventually(t, "an event says so", func() bool {
		list := &eventsv1.EventList{}
		if err := server.Client.List(t.Context(), list, client.InNamespace(r.namespace)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == v1alpha1.ReasonKeptForMachine && e.Regarding.Name == "one"
		})
	})
	if h, _ := r.host("server-00"); h.Spec.ConsumerRef == nil || h.Spec.Image == nil {
		t.Errorf("the host was given up: %+v", h.Spec)
	}
}
