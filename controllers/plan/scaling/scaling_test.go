package scaling

import (
	"strings"
	"testing"
	"time"
)

func TestMachinesThatAreNotReadyAreDeletedFirstThenOutdatedOnesThenTheNewest(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 10, minute, 0, 0, time.UTC) }
	machines := []Machine{
		{Name: "old", Ready: true, UpToDate: true, Created: at(0)},
		{Name: "twin-b", Ready: true, UpToDate: true, Created: at(9)},
		{Name: "twin-a", Ready: true, UpToDate: true, Created: at(9)},
		{Name: "outdated", Ready: true, Created: at(1)},
		{Name: "broken", UpToDate: true, Created: at(1)},
		{Name: "broken-and-outdated", Created: at(2)},
		{Name: "broken-newer", UpToDate: true, Created: at(3)},
		{Name: "leaving", Ready: true, UpToDate: true, Created: at(5), Deleting: true},
	}
	for range machines {
		machines = append(machines[1:], machines[0]) // the order in which they are listed decides nothing
		var order, reasons []string
		for _, deletion := range Plan(0, machines).Delete {
			order = append(order, deletion.Name)
			reasons = append(reasons, deletion.Reason)
		}
		if got, want := strings.Join(order, " "), "broken-and-outdated broken-newer broken outdated twin-a twin-b old"; got != want {
			t.Fatalf("order %s, want %s", got, want)
		}
		if reasons[0] != "it is not Ready" || reasons[3] != "its revision is outdated" || reasons[6] != "it is the newest" {
			t.Errorf("reasons %q", reasons)
		}
	}
}

func TestAMachineThatIsBeingDeletedIsNotCounted(t *testing.T) {
	machines := []Machine{{Name: "a"}, {Name: "b", Deleting: true}}
	for replicas, want := range map[int]int{1: 0, 2: 1, 5: 4} {
		if got := Plan(replicas, machines); got.Create != want || got.Delete != nil {
			t.Errorf("%d asked for: %+v", replicas, got)
		}
	}
}

func TestOneMachineTooManyIsDeleted(t *testing.T) {
	if got := Plan(1, []Machine{{Name: "a", Ready: true}, {Name: "b"}}); got.Create != 0 || len(got.Delete) != 1 || got.Delete[0].Name != "b" {
		t.Errorf("%+v", got)
	}
}
