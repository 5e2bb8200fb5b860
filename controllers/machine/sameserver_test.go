package machine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/test/management"
)

// serveMetal3 replaces the rig's NodeProvider by a metal3 one.
func (r *rig) serveMetal3() {
	r.t.Helper()
	provider := &v1alpha1.NodeProvider{ObjectMeta: r.global()}
	if err := server.Client.Delete(r.t.Context(), provider); err != nil {
		r.t.Fatal(err)
	}
	server.Create(r.t, &v1alpha1.NodeProvider{ObjectMeta: r.global(), Spec: v1alpha1.NodeProviderSpec{HostNamespace: r.namespace, Metal3: &v1alpha1.Metal3Provider{}}})
}

// TestAMachineClaimsNoServerThatTwoHostsHave uses a metal3 provider, whose hosts report no such error by themselves.
func TestAMachineClaimsNoServerThatTwoHostsHave(t *testing.T) {
	r := newRig(t, 0)
	r.serveMetal3()
	addresses := map[string]string{"a": "redfish://10.0.0.7/redfish/v1/Systems/1", "b": "ipmi://10.0.0.7", "c": "redfish://10.0.0.8/redfish/v1/Systems/1"}
	for name, address := range addresses {
		m := r.meta(name)
		m.Labels = map[string]string{"rack": r.namespace}
		h := &metal3.BareMetalHost{ObjectMeta: m, Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{Address: address}}}
		h.Status.OperationalStatus = metal3.OperationalStatusOK
		h.Status.Provisioning.State, h.Status.PoweredOn = metal3.StateAvailable, name == "b" // what a runs is on
		server.Create(t, h)
	}
	r.start()
	r.addMachine("m-1")
	r.addMachine("m-2")
	claimed := func(host string) bool {
		h := &metal3.BareMetalHost{}
		if err := server.Client.Get(context.Background(), r.key(host), h); err != nil {
			t.Fatal(err)
		}
		return h.Spec.ConsumerRef != nil
	}
	management.Eventually(t, "one Machine has the server of its own, the other one says why it has none", func() bool {
		told := false
		for _, name := range []string{"m-1", "m-2"} {
			c := meta.FindStatusCondition(r.machine(name).Status.Conditions, v1alpha1.ConditionClaimed)
			told = told || c != nil && c.Reason == v1alpha1.ReasonNoHostAvailable &&
				strings.Contains(c.Message, "3 hosts: 2 registered twice, 1 taken")
		}
		return claimed("c") && told
	})
	if claimed("a") || claimed("b") {
		t.Fatal("a server that two hosts have is claimed")
	}
	other := &metal3.BareMetalHost{}
	if err := server.Client.Get(t.Context(), r.key("b"), other); err != nil {
		t.Fatal(err)
	}
	before := other.DeepCopy()
	other.Spec.BMC.Address = "ipmi://10.0.0.9"
	if err := server.Client.Patch(t.Context(), other, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the other Machine has a host when the address is corrected", func() bool { return claimed("a") || claimed("b") })
}

// TestAServerThatTwoHostsHaveIsNotReleased uses a metal3 provider, whose baremetal-operator would power off and clean what the Machine gives back.
func TestAServerThatTwoHostsHaveIsNotReleased(t *testing.T) {
	r := newRig(t, 0)
	r.serveMetal3()
	host := func(name string) *metal3.BareMetalHost {
		h := &metal3.BareMetalHost{ObjectMeta: r.meta(name), Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{Address: "redfish://10.0.1.7"}}}
		h.Labels = map[string]string{"rack": r.namespace}
		h.Status.OperationalStatus, h.Status.Provisioning.State = metal3.OperationalStatusOK, metal3.StateAvailable
		return h
	}
	server.Create(t, host("a"))
	r.start()
	r.addMachine("m-1")
	read := func() *metal3.BareMetalHost {
		h := &metal3.BareMetalHost{}
		if err := server.Client.Get(context.Background(), r.key("a"), h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	management.Eventually(t, "the installation is requested", func() bool { h := read(); return h.Spec.Image != nil && h.Spec.Online })
	other := host("b")
	server.Create(t, other)
	if err := server.Client.Delete(t.Context(), r.machine("m-1")); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Machine says why it is not released", func() bool {
		c := meta.FindStatusCondition(r.machine("m-1").Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == v1alpha1.ReasonSameServer && strings.Contains(c.Message, "another host is the same server") && !strings.Contains(c.Message, "10.0.1.7")
	})
	if h := read(); h.Spec.Image == nil || !h.Spec.Online || h.Spec.ConsumerRef == nil {
		t.Errorf("the server is taken away from what runs on it: %+v", h.Spec)
	}
	if err := server.Client.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	h := read()
	before := h.DeepCopy()
	h.Annotations = map[string]string{"poke": "1"}
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the release goes on when the other host is gone", func() bool { h := read(); return h.Spec.Image == nil && !h.Spec.Online })
}

// TestAServerThatTwoHostsHaveIsNotReleasedWithoutItsMachine uses a metal3 provider. The release of a host whose Machine is gone waits too.
func TestAServerThatTwoHostsHaveIsNotReleasedWithoutItsMachine(t *testing.T) {
	r := newRig(t, 0)
	r.serveMetal3()
	host := func(name string) *metal3.BareMetalHost {
		h := &metal3.BareMetalHost{ObjectMeta: r.meta(name), Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{Address: "redfish://10.0.2.7"}}}
		h.Status.OperationalStatus, h.Status.Provisioning.State = metal3.OperationalStatusOK, metal3.StateProvisioned
		return h
	}
	orphan, other := host("a"), host("b")
	orphan.Spec.Online, orphan.Spec.Image, orphan.Status.PoweredOn = true, &metal3.Image{URL: "http://10.0.2.1/image"}, true
	orphan.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: r.namespace, Name: "gone", UID: "m1"}
	orphan.Annotations = map[string]string{
		v1alpha1.AnnotationRelease: "m1", placement.AnnotationLastTenant: r.tenant.String(),
		v1alpha1.AnnotationInstallation: `{"machine":{"namespace":"x","name":"gone","uid":"m1"},"attempt":1}`,
	}
	server.Create(t, other)
	server.Create(t, orphan)
	r.start()
	read := func() *metal3.BareMetalHost {
		h := &metal3.BareMetalHost{}
		if err := server.Client.Get(context.Background(), r.key("a"), h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	management.Eventually(t, "an event says what the release waits for", func() bool {
		events := &eventsv1.EventList{}
		if err := server.Client.List(context.Background(), events, client.InNamespace(r.namespace)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "a" && e.Reason == v1alpha1.ReasonSameServer && strings.Contains(e.Note, "BareMetalHost "+r.namespace+"/b has the same BMC 10.0.2.7")
		})
	})
	if h := read(); h.Spec.Image == nil || !h.Spec.Online {
		t.Errorf("the server is taken away from what runs on it: %+v", h.Spec)
	}
	if err := server.Client.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	h := read()
	before := h.DeepCopy()
	h.Labels = map[string]string{"poke": "1"}
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the release goes on when the other host is gone", func() bool { return !read().Spec.Online })
	if h = read(); h.Spec.Image == nil {
		t.Error("the image is removed before the server is off")
	}
	// Its operator has seen the server off.
	before = h.DeepCopy()
	h.Status.PoweredOn = false
	if err := server.Client.Status().Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	before = h.DeepCopy()
	delete(h.Annotations, metal3.RebootAnnotationPrefix)
	if err := server.Client.Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the image is removed", func() bool { return read().Spec.Image == nil })
	h = read()
	before = h.DeepCopy()
	h.Status.Provisioning.State = metal3.StateAvailable
	if err := server.Client.Status().Patch(t.Context(), h, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the host is free", func() bool { return read().Spec.ConsumerRef == nil })
	// Nobody has asked the tenant's cluster to delete it, and there is no HostRecord to say so.
	if nodes := v1alpha1.RemainingNodesOf(read()); len(nodes) != 1 || nodes[0].Name != "gone" || nodes[0].Tenant != r.tenant.String() || nodes[0].MachineUID != "m1" {
		t.Errorf("the host names the Nodes %+v", nodes)
	}
}
