package lifecycle

import (
	"maps"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TestAPersonsRebootIsKeptApartFromIngots requests a power-off, lets the annotations change meanwhile, and withdraws the request.
func TestAPersonsRebootIsKeptApartFromIngots(t *testing.T) {
	const plain, suffixed, hard = metal3.RebootAnnotationPrefix, metal3.RebootAnnotationPrefix + "/maintenance", `{"mode":"hard"}`
	with := func(key, value string) func(map[string]string) {
		return func(a map[string]string) { a[key] = value }
	}
	without := func(a map[string]string) { delete(a, plain) }
	for _, c := range []struct {
		name              string
		before            map[string]string
		meanwhile         func(map[string]string)
		requested, isOurs bool
		after             map[string]string
	}{
		{"nobody else asks for anything", nil, func(map[string]string) {}, true, true, nil},
		{"the operator has seen the server off", nil, without, true, false, nil},
		{"a person asks for a hard reboot first", map[string]string{plain: hard}, func(map[string]string) {}, false, false, map[string]string{plain: hard}},
		{"a person asks for any reboot first", map[string]string{plain: ""}, func(map[string]string) {}, false, false, map[string]string{plain: ""}},
		{"a person takes a reboot back", map[string]string{plain: hard}, without, false, false, nil},
		{"a person makes it a hard one", nil, with(plain, hard), false, false, map[string]string{plain: hard}},
		{"a person keeps the server off", map[string]string{suffixed: ""}, func(map[string]string) {}, true, true, map[string]string{suffixed: ""}},
	} {
		h := &metal3.BareMetalHost{}
		h.Annotations, h.Spec.Online = maps.Clone(c.before), true
		RequestPowerOff(h, "machine-1")
		for key, value := range c.before {
			if h.Annotations[key] != value {
				t.Errorf("%s: annotation %s is %q after the request", c.name, key, h.Annotations[key])
			}
		}
		c.meanwhile(h.Annotations)
		if h.Spec.Online || IsPowerOffRequested(h) != c.requested || (h.Annotations[plain] == ownReboot) != c.isOurs {
			t.Errorf("%s: online %t, requested %t, annotations %v", c.name, h.Spec.Online, IsPowerOffRequested(h), h.Annotations)
		}
		WithdrawPowerOff(h)
		if len(h.Annotations) != len(c.after) || !maps.Equal(c.after, h.Annotations) && len(c.after) > 0 {
			t.Errorf("%s: after the request is withdrawn the annotations are %v, expected %v", c.name, h.Annotations, c.after)
		}
	}
}

// TestAPowerOffOfAServerThatWasOnIsRemembered has a person ask for a reboot before or after the request, so that the annotation for a reboot is theirs.
func TestAPowerOffOfAServerThatWasOnIsRemembered(t *testing.T) {
	person := func(h *metal3.BareMetalHost) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, metal3.RebootAnnotationPrefix, `{"mode":"hard"}`)
	}
	for _, isOn := range []bool{true, false} {
		h := &metal3.BareMetalHost{}
		h.Spec.Online, h.Status.PoweredOn = true, isOn
		person(h)
		RequestPowerOff(h, "machine-1")
		first := IsPowerOffOfRunning(h)
		delete(h.Annotations, metal3.RebootAnnotationPrefix)
		h.Status.PoweredOn = false
		RequestPowerOff(h, "machine-1")
		person(h)
		RequestPowerOff(h, "machine-1")
		if last := IsPowerOffOfRunning(h); first != isOn || last != isOn {
			t.Errorf("the server was on: %t; that is known at first: %t, and after the status said off: %t", isOn, first, last)
		}
		h.Spec.Online = true // somebody else's
		RequestPowerOff(h, "machine-1")
		if IsPowerOffOfRunning(h) {
			t.Error("a request that was undone counts as one of a server that was on")
		}
	}
}

// TestAPowerOffIsRequestedAgainWhenAPersonsRebootIsGone has a status that said off at the request, so that only Ingot's own annotation proves anything.
func TestAPowerOffIsRequestedAgainWhenAPersonsRebootIsGone(t *testing.T) {
	f := served(t, v1alpha1.MachineDraining)
	now := metav1.NewMicroTime(f.Now)
	f.Machine.Status.PowerOffRequestedAt, f.Node = &now, Node{}
	f.Host.Online, f.Host.PoweredOn, f.Host.State, f.Host.ObservedGeneration = false, false, metal3.StateProvisioned, nil
	f.Host.Manageable = ptr.To(true)
	f.Host.PowerOffRequested, f.Host.RebootRequested = false, false // the person has taken the reboot back
	if d := Plan(f); d.Action == nil || d.Action.Kind != PowerOff {
		t.Errorf("action %v, phase %s, waits for %s", d.Action, d.Status.Phase, d.Status.WaitingFor)
	}
}
