package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var begin = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)

func waits(owner, host string, minute int) Entry {
	return Entry{Host: host, Owner: owner, State: Waiting, Since: begin.Add(time.Duration(minute) * time.Minute)}
}

func atWork(owner, host string, minute int) Entry {
	e := waits(owner, host, minute)
	e.State = AtWork
	return e
}

func TestThePlaceCountsThoseBefore(t *testing.T) {
	all := []Entry{atWork("a", "1", 0), waits("a", "4", 3), waits("a", "2", 1), waits("a", "3", 2)}
	for limit, want := range map[int]map[string]int{
		1: {"1": 0, "2": 1, "3": 2, "4": 3},
		2: {"1": 0, "2": 0, "3": 1, "4": 2},
		3: {"2": 0, "3": 0, "4": 1},
		9: {"4": 0},
	} {
		for host, place := range want {
			if got := Place(all, host, limit); got != place {
				t.Errorf("limit %d, host %s: place %d, expected %d", limit, host, got, place)
			}
		}
	}
}

func TestTheQueueIsFairBetweenOwners(t *testing.T) {
	all := []Entry{atWork("many", "m0", 0)}
	for i := range 100 {
		all = append(all, waits("many", fmt.Sprintf("m%03d", i+1), 1))
	}
	all = append(all, waits("few", "f1", 60), waits("few", "f2", 60))
	if got := order(all)[:4]; !slices.Equal(got, []string{"f1", "f2", "m001", "m002"}) {
		t.Errorf("the order begins with %v", got)
	}
	// With room for one host the owner that was served longest ago comes first.
	served := waits("many", "m0", 0)
	served.State = Served
	if got := order([]Entry{served, waits("many", "m1", 1), waits("few", "f1", 60)}); got[0] != "f1" {
		t.Errorf("nobody is at work: the order is %v", got)
	}
}

// TestNobodyStarvesAndTheLimitHolds plays a queue in which one owner asks again and again.
func TestNobodyStarvesAndTheLimitHolds(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + random.IntN(3)
		all := []Entry{waits("few", "f", 0)}
		for i := range 20 {
			all = append(all, waits("many", fmt.Sprintf("m%02d", i), 0))
		}
		for minute := range 12 {
			now := begin.Add(time.Duration(minute) * time.Minute)
			for i := range all {
				if all[i].State == Waiting && Place(all, all[i].Host, limit) == 0 {
					all[i].State, all[i].Since = AtWork, now
				}
			}
			busy := 0
			for _, e := range all {
				if e.State == AtWork {
					busy++
				}
			}
			if busy > limit {
				t.Fatalf("seed %d: %d hosts are at work, the limit is %d", seed, busy, limit)
			}
			if all[0].State == AtWork {
				break
			}
			if minute == 11 {
				t.Fatalf("seed %d: the only host of an owner was never served", seed)
			}
			for i := range len(all) { // each is done sooner or later, and wanted again
				if all[i].State == AtWork && random.IntN(2) == 0 {
					all = append(all, Entry{Owner: all[i].Owner, State: Served, Since: all[i].Since})
					all[i].State, all[i].Since = Waiting, now
				}
			}
		}
	}
}
