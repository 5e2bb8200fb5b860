package scaling

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestMachinesThatAreNotReadyAreDeletedFirstThenOutdatedOnesThenTheNewest(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 10, minute, 0, 0, time.UTC) }
	machines := []Machine{
		{HasHost: true, Name: "old", Ready: true, UpToDate: true, Created: at(0)},
		{HasHost: true, Name: "twin-b", Ready: true, UpToDate: true, Created: at(9)},
		{HasHost: true, Name: "twin-a", Ready: true, UpToDate: true, Created: at(9)},
		{HasHost: true, Name: "outdated", Ready: true, Created: at(1)},
		{HasHost: true, Name: "broken", UpToDate: true, Created: at(1)},
		{HasHost: true, Name: "broken-and-outdated", Created: at(2)},
		{HasHost: true, Name: "broken-newer", UpToDate: true, Created: at(3)},
		{HasHost: true, Name: "leaving", Ready: true, UpToDate: true, Created: at(5), Deleting: true},
		{Name: "hostless", UpToDate: true, Created: at(0)},
	}
	for range machines {
		machines = append(machines[1:], machines[0]) // the order in which they are listed decides nothing
		var order, reasons []string
		for _, deletion := range Plan(0, 0, machines).Delete {
			order = append(order, deletion.Name)
			reasons = append(reasons, deletion.Reason)
		}
		if got, want := strings.Join(order, " "), "hostless broken-and-outdated broken-newer broken outdated twin-a twin-b old"; got != want {
			t.Fatalf("order %s, want %s", got, want)
		}
		if reasons[0] != "it has no host" || reasons[1] != "it is not Ready" || reasons[4] != "its revision is outdated" || reasons[7] != "it is the newest" {
			t.Errorf("reasons %q", reasons)
		}
	}
}

func TestAMachineThatIsBeingDeletedIsNotCounted(t *testing.T) {
	machines := []Machine{{Name: "a"}, {Name: "b", Deleting: true}}
	for replicas, want := range map[int]int{1: 0, 2: 1, 5: 4} {
		if got := Plan(replicas, 9, machines); got.Create != want || got.Delete != nil {
			t.Errorf("%d asked for: %+v", replicas, got)
		}
	}
}

func TestOneMachineTooManyIsDeleted(t *testing.T) {
	if got := Plan(1, 0, []Machine{{Name: "a", Ready: true}, {Name: "b"}}); got.Create != 0 || len(got.Delete) != 1 || got.Delete[0].Name != "b" {
		t.Errorf("%+v", got)
	}
}

func TestNoMoreMachinesWaitThanThereAreHostsFor(t *testing.T) {
	machines := func(placed, claiming, waiting int) []Machine {
		var all []Machine
		add := func(kind string, n int, m Machine) {
			for i := range n {
				m.Name = fmt.Sprintf("%s-%02d", kind, i)
				all = append(all, m)
			}
		}
		add("placed", placed, Machine{HasHost: true, Ready: true})
		add("claiming", claiming, Machine{})
		add("waiting", waiting, Machine{IsWaiting: true})
		return all
	}
	for _, c := range []struct {
		replicas, free, placed, claiming, waiting int
		create, remove                            int
	}{
		{replicas: 100, create: 1},
		{replicas: 100, free: 2, create: 2},
		{replicas: 100, free: 200, create: 100},
		{replicas: 100, placed: 2, create: 1},
		{replicas: 100, placed: 2, waiting: 1},
		{replicas: 100, placed: 2, free: 3, waiting: 1, create: 2},
		{replicas: 100, placed: 99, free: 3, create: 1},
		{replicas: 100, placed: 100, free: 3},
		{replicas: 100, placed: 2, waiting: 98, remove: 97},
		{replicas: 100, placed: 2, free: 40, waiting: 98, remove: 58},
		{replicas: 100, placed: 2, claiming: 5, waiting: 3, remove: 3},
		{replicas: 100, placed: 2, claiming: 5},
		{replicas: 100, claiming: 100}, // restored without status
		{replicas: 3, placed: 2, waiting: 98, remove: 97},
		{replicas: 0, placed: 1, claiming: 1, waiting: 1, remove: 3},
	} {
		got := Plan(c.replicas, c.free, machines(c.placed, c.claiming, c.waiting))
		if got.Create != c.create || len(got.Delete) != c.remove {
			t.Errorf("%+v: creates %d, deletes %d", c, got.Create, len(got.Delete))
		}
		for i, d := range got.Delete {
			if c.replicas > 0 && !strings.HasPrefix(d.Name, "waiting") {
				t.Errorf("%+v: deletes %s as number %d", c, d.Name, i)
			}
		}
	}
}

func TestAMachineThatNothingIsKnownOfIsNotDeleted(t *testing.T) {
	for _, c := range []struct{ replicas, unknown, broken, ready, removed int }{
		{replicas: 9, unknown: 10},
		{replicas: 0, unknown: 10, removed: 10},
		{replicas: 9, unknown: 1, broken: 1, ready: 8},
		{replicas: 8, unknown: 1, broken: 1, ready: 8, removed: 1},
		{replicas: 1, unknown: 1, broken: 1, ready: 8, removed: 8},
		{replicas: 0, unknown: 1, broken: 1, ready: 8, removed: 10},
		{replicas: 9, broken: 1, ready: 9, removed: 1},
	} {
		var machines []Machine
		for kind, n := range map[string]int{"unknown": c.unknown, "broken": c.broken, "ready": c.ready} {
			for i := range n {
				machines = append(machines, Machine{Name: fmt.Sprintf("%s-%d", kind, i), HasHost: kind != "unknown", IsUnknown: kind == "unknown", Ready: kind == "ready", UpToDate: true})
			}
		}
		got := Plan(c.replicas, 0, machines).Delete
		if len(got) != c.removed || c.replicas > 0 && c.removed > 0 && got[0].Name != "broken-0" {
			t.Errorf("%+v: deletes %v", c, got)
		}
		for _, d := range got {
			if isUnknown := strings.HasPrefix(d.Name, "unknown"); isUnknown && c.replicas > 0 || isUnknown != (d.Reason == "no Machine is asked for") {
				t.Errorf("%+v: deletes %s: %s", c, d.Name, d.Reason)
			}
		}
	}
}
