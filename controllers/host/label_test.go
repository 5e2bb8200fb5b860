package host_test

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAnInspectedHostIsLabelledByItsGPUsBeforeItIsAvailable(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.credentials(s, first(s.Credentials()), second(s.Credentials()))
	r.register(s, func(h *metal3.BareMetalHost) { h.Labels = map[string]string{"gpu-model": "h100"} })
	labelled := func(h *metal3.BareMetalHost) bool {
		return h.Labels[v1alpha1.LabelGPUModel] == "H100-SXM5-80GB" && h.Labels[v1alpha1.LabelGPUCount] == "8" && h.Labels["gpu-model"] == "h100"
	}
	h, _ := r.await(s, "it is available, or labelled", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return inState(metal3.StateAvailable)(h, record) || labelled(h)
	})
	if !labelled(h) {
		t.Errorf("available with the labels %v", h.Labels)
	}
	r.await(s, "it is available", inState(metal3.StateAvailable))

	// What a person writes there is set back, and not in silence.
	r.edit(s, func(h *metal3.BareMetalHost) { h.Labels[v1alpha1.LabelGPUModel] = "B200" })
	r.await(s, "the label says what was found", func(h *metal3.BareMetalHost, _ *v1alpha1.HostRecord) bool { return labelled(h) })
	eventually(t, "an event tells of it", func() bool { return r.told(s.Name(), "Relabelled") })
}
