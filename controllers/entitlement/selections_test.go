package entitlement

import (
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestASelectorIsTriedAnewWhenDevicesOrGatesChange has clusters of the same client type.
func TestASelectorIsTriedAnewWhenDevicesOrGatesChange(t *testing.T) {
	var s selections
	one, other := client.NewNamespacedClient(server.Client, "one"), client.NewNamespacedClient(server.Client, "other")
	slice := func(version string, devices int) []resourcev1.ResourceSlice {
		return []resourcev1.ResourceSlice{{
			ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", ResourceVersion: version},
			Spec:       resourcev1.ResourceSliceSpec{Driver: "d", NodeName: ptr.To("n"), Devices: make([]resourcev1.Device, devices)},
		}}
	}
	const all, broken = `device.driver == "d"`, `device.`
	for _, c := range []struct {
		name            string
		cluster         client.Client
		published       []resourcev1.ResourceSlice
		gated           map[string]bool
		admitted, gates int
	}{
		{"the first look", one, slice("1", 2), nil, 2, 0},
		{"what is kept is not read again", one, slice("1", 9), nil, 2, 0},
		{"another cluster", other, slice("1", 3), nil, 3, 0},
		{"a slice is another", one, slice("2", 4), nil, 4, 0},
		{"a gate is closed", one, slice("2", 4), map[string]bool{"n": true}, 0, 4},
		{"a gate that is open counts as none", one, slice("2", 4), map[string]bool{"n": false}, 4, 0},
	} {
		got, err := s.find(c.cluster, stateOf(c.published, c.gated), all, c.published, c.gated)
		if err != nil || got.Admitted != c.admitted || got.Gated != c.gates {
			t.Errorf("%s: %+v, %v; expected %d admitted and %d gated", c.name, got, err, c.admitted, c.gates)
		}
		for range 2 {
			if _, err := s.find(c.cluster, stateOf(c.published, c.gated), broken, c.published, c.gated); err == nil {
				t.Errorf("%s: a selector that cannot be compiled has no error", c.name)
			}
		}
	}
}

// TestOthersAreToldOfAnotherStateOfTheDevicesOnce has two Entitlements look at a cluster whose devices change.
func TestOthersAreToldOfAnotherStateOfTheDevicesOnce(t *testing.T) {
	var s selections
	begin := time.Unix(0, 0)
	for _, look := range []struct {
		name    string
		seconds int
		state   uint64
		want    bool
	}{
		{"the first look finds out", 0, 1, false},
		{"the same", 30, 1, false},
		{"a node is gated", 40, 2, true},
		{"the other one sees it too", 41, 2, false},
		{"another node is gated at once", 42, 3, false},
		{"the same a bit later", 46, 3, true},
		{"and again", 60, 3, false},
	} {
		if got := s.isNews(nil, look.state, begin.Add(time.Duration(look.seconds)*time.Second)); got != look.want {
			t.Errorf("%s: %t, want %t", look.name, got, look.want)
		}
	}
}
