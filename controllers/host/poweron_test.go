package host

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestServersOfAHallThatLostItsPowerAreStartedOneAfterAnother(t *testing.T) {
	var p powerOns
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	name := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "hall", Name: fmt.Sprint("host-", i)}
	}
	on, at := 0, []time.Time{}
	isOn := map[int]bool{}
	for now := began; on < 1000 && now.Sub(began) < time.Hour; now = now.Add(50 * time.Millisecond) {
		for i := range 1000 {
			if !isOn[i] && p.wait(name(i), now) == 0 {
				isOn[i], at = true, append(at, now)
				p.leave(name(i))
				on++
			}
		}
	}
	if on < 1000 {
		t.Fatalf("%d of 1000 are on after an hour", on)
	}
	const most = 8 // within a second, where none was before
	for i := most; i < len(at); i++ {
		if between := at[i].Sub(at[i-most]); between < time.Second-50*time.Millisecond {
			t.Fatalf("%d within %s", most+1, between)
		}
	}
	if took := at[len(at)-1].Sub(began); took > 6*time.Minute {
		t.Errorf("the last one is on after %s", took)
	}
	if len(p.turns) > 0 {
		t.Errorf("%d turns remain", len(p.turns))
	}
	if wait := p.wait(name(1), began.Add(2*time.Hour)); wait > 0 {
		t.Errorf("one alone waits %s", wait)
	}
}
