package grants

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ingot-dev/ingot/controllers/plan/breaker"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ask(object, rack string) breaker.Ask {
	group := &breaker.Group{Domain: breaker.Domain{Kind: "rack", Name: rack}, Servers: 18}
	return breaker.Ask{Act: breaker.Reinstall, Fault: breaker.Fault{Object: object, At: noon}, Groups: []*breaker.Group{group}}
}

func TestActorsThatEachSeeOneAreAnsweredByOneThatSeesAll(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	desk := &Desk{Clock: clock}
	askAll := func() (granted int) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 18 {
			all.Go(func() {
				for _, a := range desk.Ask(fmt.Sprint("rollout-", i), []breaker.Ask{ask(fmt.Sprint("a/m", i), "r1")}) {
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
		desk.Ask(fmt.Sprint("rollout-", i), nil) // they are Ready again
	}
	if a := desk.Ask("rollout-0", []breaker.Ask{ask("a/m0", "r1")}); !a[0].IsGranted {
		t.Errorf("the others are Ready again, and the one that is left is held: %+v", a)
	}
}

func TestAGrantHoldsUntilItsActorStopsAskingAndCountsForAnHour(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	desk := &Desk{Clock: clock}
	first, second := []breaker.Ask{ask("a/m0", "r1")}, []breaker.Ask{ask("a/m1", "r1")}
	desk.Ask("one", first)
	clock.SetTime(noon.Add(3 * time.Minute))
	for range 2 {
		if a := desk.Ask("one", first); !a[0].IsGranted {
			t.Fatalf("%+v", a)
		}
		desk.Ask("two", second)
		clock.SetTime(clock.Now().Add(3 * time.Minute))
	}
	desk.Ask("one", nil)
	if a := desk.Ask("two", second); a[0].IsGranted || a[0].Cause == nil || a[0].Cause.Done != 1 {
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
	next.Ask("two", second)
	clock.SetTime(clock.Now().Add(5 * time.Minute))
	if a := next.Ask("two", second); a[0].IsGranted {
		t.Errorf("a second one within the hour, after a restart: %+v", a)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	if a := next.Ask("two", second); !a[0].IsGranted {
		t.Errorf("an hour later: %+v", a)
	}
	for _, text := range []string{"{", "[1]", `[{"at":"yesterday"}]`} {
		if next.Restore(text) == nil {
			t.Errorf("%s is restored", text)
		}
	}
}

func TestWhatIsStoredFitsAnAnnotationAndIsOfTheLastHour(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	desk := &Desk{Clock: clock}
	var asks []breaker.Ask
	for i := range 3000 {
		a := ask(fmt.Sprintf("team-with-a-long-name/machine-with-a-long-name-%05d", i), "r1")
		a.IsConfirmed = true
		asks = append(asks, a)
	}
	desk.Ask("one", asks)
	text, err := desk.Save()
	if err != nil || len(text) > maxStored || len(text) < maxStored*9/10 || !strings.Contains(text, "-02999") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if err := (&Desk{Clock: clock}).Restore(text); err != nil {
		t.Error(err)
	}
	clock.SetTime(noon.Add(breaker.Window))
	if text, err := desk.Save(); text != "" || err != nil {
		t.Errorf("an hour later %d bytes are stored, %v", len(text), err)
	}
}

func TestARestartDoesNotHoldWhatHadItsGrant(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	desk := &Desk{Clock: clock}
	asks := []breaker.Ask{ask("a/m0", "r1")}
	desk.Ask("one", asks)
	clock.SetTime(noon.Add(3 * time.Minute))
	desk.Ask("one", asks)
	text, err := desk.Save()
	if err != nil {
		t.Fatal(err)
	}
	next := &Desk{Clock: clock}
	if err := next.Restore(text); err != nil {
		t.Fatal(err)
	}
	if a := next.Ask("one", asks); !a[0].IsGranted {
		t.Errorf("%+v", a)
	}
	clock.SetTime(noon.Add(64 * time.Minute))
	if text, _ := next.Save(); text != "" {
		t.Errorf("the same grant counts anew: %s", text)
	}
}
