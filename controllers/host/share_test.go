package host

import (
	"testing"

	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

func TestALaneLeavesWorkersToTheOthers(t *testing.T) {
	const workers = 8
	var l lanes
	var leave []func()
	for _, lane := range []plan.Lane{plan.LaneRoutine, plan.LaneTrial, plan.LaneSuspect} {
		for range workers / laneShare {
			done := l.enter(lane, workers)
			if done == nil {
				t.Fatalf("lane %s has less than its part", lane)
			}
			leave = append(leave, done)
		}
		if l.enter(lane, workers) != nil {
			t.Errorf("lane %s has more than its part", lane)
		}
	}
	for n := range workers - len(leave) {
		if l.enter(plan.LaneWork, workers) == nil {
			t.Fatalf("%d workers are free, and work waits", workers-len(leave)-n)
		}
	}
	leave[0]()
	if l.enter(plan.LaneRoutine, workers) == nil {
		t.Error("a worker that has left its lane is counted for ever")
	}
	if new(lanes).enter(plan.LaneSuspect, 1) == nil {
		t.Error("with one worker nothing is done for a silent BMC")
	}
}
