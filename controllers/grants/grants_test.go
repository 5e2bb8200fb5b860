package grants

import (
	"fmt"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ingot-dev/ingot/controllers/plan/breaker"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ask(object, rack string) breaker.Ask {
	return breaker.Ask{Act: breaker.Reinstall, Object: object, Domains: []breaker.Domain{{Kind: "rack", Name: rack}}}
}

func TestActorsThatEachSeeOneAreAnsweredByOneThatSeesAll(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	desk := &Desk{Clock: clock}
	servers := map[breaker.Domain]breaker.Size{{Kind: "rack", Name: "r1"}: {Servers: 18}}
	askAll := func() (granted int) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 18 {
			all.Go(func() {
				for _, a := range desk.Ask(fmt.Sprint("rollout-", i), []breaker.Ask{ask(fmt.Sprint("a/m", i), "r1")}, servers) {
					if mu.Lock(); a.IsGranted {
						granted++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		return granted
	}
	for range 5 {
		if n := askAll(); n != 0 {
			t.Fatalf("after %s: %d granted", clock.Now().Sub(noon), n)
		}
		clock.SetTime(clock.Now().Add(5 * time.Minute))
	}
	for i := 1; i < 18; i++ {
		desk.Ask(fmt.Sprint("rollout-", i), nil, nil) // they are Ready again
	}
	if a := desk.Ask("rollout-0", []breaker.Ask{ask("a/m0", "r1")}, servers); !a[0].IsGranted {
		t.Errorf("the others are Ready again, and the one that is left is held: %+v", a)
	}
}

func TestAGrantHoldsUntilItsActorStopsAskingAndCountsForAnHour(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	desk := &Desk{Clock: clock}
	first, second := []breaker.Ask{ask("a/m0", "r1")}, []breaker.Ask{ask("a/m1", "r1")}
	desk.Ask("one", first, nil)
	clock.SetTime(noon.Add(3 * time.Minute))
	for range 2 {
		if a := desk.Ask("one", first, nil); !a[0].IsGranted {
			t.Fatalf("%+v", a)
		}
		desk.Ask("two", second, nil)
		clock.SetTime(clock.Now().Add(3 * time.Minute))
	}
	desk.Ask("one", nil, nil)
	if a := desk.Ask("two", second, nil); a[0].IsGranted || a[0].Cause == nil || a[0].Cause.Done != 1 {
		t.Errorf("a second one within the hour: %+v", a)
	}
	saved, err := desk.Save()
	if err != nil {
		t.Fatal(err)
	}
	next := &Desk{Clock: clock}
	if err := next.Restore(saved); err != nil {
		t.Fatal(err)
	}
	next.Ask("two", second, nil)
	clock.SetTime(clock.Now().Add(5 * time.Minute))
	if a := next.Ask("two", second, nil); a[0].IsGranted {
		t.Errorf("a second one within the hour, after a restart: %+v", a)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	if a := next.Ask("two", second, nil); !a[0].IsGranted {
		t.Errorf("an hour later: %+v", a)
	}
	for _, text := range []string{"{", "[1]", `[{"at":"yesterday"}]`} {
		if next.Restore(text) == nil {
			t.Errorf("%s is restored", text)
		}
	}
}
