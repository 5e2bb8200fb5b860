package ironic

import (
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestWhatIsNotProvenIsRequestedAgain(t *testing.T) {
	running := newTestNode(nodes.Active, workInstall, "t1")
	running.power = "power on"
	for name, c := range map[string]struct {
		node     node
		evidence evidence
		want     action
	}{
		"a cleaning that was seen":                    {newTestNode(nodes.Manageable, workEraseFull, "t1"), evidencePresent, action{kind: actionEnd, outcome: outcomeDone}},
		"a cleaning that nobody has seen":             {newTestNode(nodes.Manageable, workEraseFull, "t1"), evidenceAbsent, action{kind: actionPrepare, target: nodes.TargetClean}},
		"a cleaning above the workers":                {saying(newTestNode(nodes.Manageable, workEraseFull, "t1"), noWorkers), evidenceAbsent, action{kind: actionPrepare, target: nodes.TargetClean}},
		"an inspection that was seen":                 {newTestNode(nodes.Manageable, workInspect, "t1"), evidencePresent, action{kind: actionEnd, outcome: outcomeDone}},
		"an inspection that nobody has seen":          {newTestNode(nodes.Manageable, workInspect, "t1"), evidenceAbsent, action{kind: actionPrepare, target: nodes.TargetInspect}},
		"an inspection after one that failed":         {saying(newTestNode(nodes.InspectFail, workInspect, "t1"), noWorkers), evidenceAbsent, action{kind: actionPrepare, target: nodes.TargetInspect}},
		"a node that is active":                       {running, evidenceUnread, action{kind: actionProve}},
		"a node that is active with its config drive": {running, evidencePresent, action{kind: actionEnd, outcome: outcomeDone}},
		"a node that is active without one":           {running, evidenceAbsent, action{kind: actionPower}},
		"the same, off":                               {newTestNode(nodes.Active, workInstall, "t1"), evidenceAbsent, action{kind: actionPrepare, target: nodes.TargetRebuild}},
		"an install above the workers":                {saying(newTestNode(nodes.Available, workInstall, "t1"), noWorkers), evidenceUnread, action{kind: actionPrepare, target: nodes.TargetActive}},
		"an install after one that failed":            {saying(newTestNode(nodes.DeployFail, workInstall, "t1"), noWorkers), evidenceUnread, action{kind: actionPrepare, target: nodes.TargetActive}},
		"a node that its conductor still has":         {func() node { n := running; n.reservation = "conductor-1"; return n }(), evidencePresent, action{kind: actionWait}},
		"an erase that was not requested yet":         {newTestNode(nodes.Manageable, workEraseFull, ""), evidencePresent, action{kind: actionPrepare, target: nodes.TargetClean}},
	} {
		asked := newTestCall(7, c.node.record.work)
		asked.evidence = c.evidence
		if got := nextAction(c.node, asked); got != c.want {
			t.Errorf("%s: expected %+v, seen %+v", name, c.want, got)
		}
	}
}

func TestAConfigDriveIsFoundWhateverIronicShowsOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		info map[string]any
		want bool
	}{
		"asterisks":                {map[string]any{"configdrive": "******"}, true},
		"its documents":            {map[string]any{"configdrive": map[string]any{"user_data": "a"}}, true},
		"the drive that was taken": {map[string]any{"image_source": "a"}, false},
		"nothing":                  {map[string]any{"configdrive": nil}, false},
		"an empty drive":           {map[string]any{"configdrive": ""}, false},
	} {
		if got := newNode(nodes.Node{InstanceInfo: c.info}).traces.hasDrive; got != c.want {
			t.Errorf("%s: expected %v, seen %v", name, c.want, got)
		}
	}
}

// TestAnAttemptThatItsDeadlineEndedSaysSo has the deadline end a wait, after which nothing but the deadline itself, which comes with each call, tells why the node rests.
func TestAnAttemptThatItsDeadlineEndedSaysSo(t *testing.T) {
	for name, n := range map[string]node{
		"an install that waited for its agent": newTestNode(nodes.Available, workInstall, "t1"),
		"an erase that waited for its agent":   saying(newTestNode(nodes.CleanFail, workEraseFull, "t1"), aborted),
		"an inspection that waited":            saying(newTestNode(nodes.InspectFail, workInspect, "t1"), "Inspection was aborted by request."),
		"an install that was refused":          saying(newTestNode(nodes.Available, workInstall, "t1"), noWorkers),
		"a cleaning of which nothing was seen": newTestNode(nodes.Manageable, workEraseFull, "t1"),
		"an erase that waits for its power off": func() node {
			n := done(newTestNode(nodes.Manageable, workEraseFull, "t1"))
			n.power = "power on"
			return n
		}(),
	} {
		if status := statusOf(n); status.State != hardware.AttemptRunning {
			t.Errorf("%s: before the outcome is stored the attempt is %+v", name, *status)
		}
		late := newTestCall(7, n.record.work)
		late.now, late.evidence = late.deadline, evidenceAbsent
		want := action{kind: actionEnd, outcome: hardware.ReasonDeadlineExceeded}
		if got := nextAction(n, late); got != want {
			t.Errorf("%s: expected %+v, seen %+v", name, want, got)
		}
		n.record.outcome = hardware.ReasonDeadlineExceeded
		if status := statusOf(n); status.State != hardware.AttemptFailed || status.Reason != hardware.ReasonDeadlineExceeded {
			t.Errorf("%s: the attempt is %+v", name, *status)
		}
	}
	n := saying(newTestNode(nodes.CleanFail, workEraseFull, "t1"), aborted)
	want := action{kind: actionEnd, outcome: hardware.ReasonCancelled}
	if got := nextAction(n, newTestCall(7, workEraseFull)); got != want {
		t.Errorf("somebody aborts before the deadline: expected %+v, seen %+v", want, got)
	}
}

// look is one list of the node.
type look struct {
	after time.Duration // since the list before
	node  node
}

// evidenceAfter returns the evidence of the last look, after all of them, of which the first is counted from testTime.
func (s *sightings) evidenceAfter(looks []look) evidence {
	now, last := testTime, node{}
	for _, look := range looks {
		now, last = now.Add(look.after), look.node
		s.listed(last, now)
	}
	return s.evidenceOf(last)
}

// at returns the node in another state, since another change.
func (n node) at(state nodes.ProvisionState, changed string) node {
	n.state, n.changed = state, changed
	return n
}

func (n node) cleaningBy(step string) node {
	n.cleanStep = step
	return n
}

func TestACleaningIsProvenByWhatOnlyItShows(t *testing.T) {
	const soon, late = 5 * time.Second, unseenLimit + time.Second
	n := newTestNode(nodes.Manageable, workEraseFull, "t1")
	cleaning, waiting, erasing := n.at(nodes.Cleaning, "t2"), n.at(nodes.CleanWait, "t3"), n.at(nodes.CleanWait, "t4").cleaningBy("erase_devices")
	before := n.at(nodes.Manageable, "t1")
	other, end := n.at(nodes.CleanWait, "t4").cleaningBy("erase_devices_metadata"), n.at(nodes.Manageable, "t9")
	inspection := newTestNode(nodes.Manageable, workInspect, "t1")
	for name, c := range map[string]struct {
		isAccepted bool
		looks      []look
		want       evidence
	}{
		"accepted, and too short to be listed":                  {true, []look{{soon, end}}, evidenceToConfirm},
		"accepted, and seen":                                    {true, []look{{soon, cleaning}, {soon, waiting}, {soon, end}}, evidenceToConfirm},
		"listed again and again after its end":                  {true, []look{{soon, end}, {late, end}, {late, end}}, evidenceToConfirm},
		"seen by a process that has just started":               {false, []look{{soon, waiting}, {soon, erasing}, {soon, end}}, evidenceToConfirm},
		"nothing was seen":                                      {false, []look{{soon, before}, {soon, end}}, evidenceAbsent},
		"a request that is about to be refused":                 {false, []look{{soon, before}, {soon, cleaning}, {soon, end}}, evidenceAbsent},
		"other steps, by an operator":                           {false, []look{{soon, before}, {soon, waiting}, {soon, other}, {soon, end}}, evidenceAbsent},
		"provided and managed after a refusal":                  {false, []look{{soon, before}, {soon, n.at(nodes.Available, "t2")}, {soon, end}}, evidenceAbsent},
		"a process that starts after its end":                   {false, []look{{soon, end}, {late, end}}, evidenceUnread},
		"a process that starts before its step":                 {false, []look{{soon, waiting}, {soon, end}}, evidenceUnread},
		"aborted, and managed":                                  {true, []look{{soon, erasing}, {soon, saying(n.at(nodes.CleanFail, "t5"), aborted)}, {soon, end}}, evidenceAbsent},
		"aborted and managed between two lists":                 {true, []look{{soon, erasing}, {soon, saying(end, aborted)}}, evidenceAbsent},
		"provided after its end":                                {true, []look{{soon, erasing}, {soon, n.at(nodes.Available, "t8")}, {soon, end}}, evidenceAbsent},
		"moved after its end, between two lists":                {true, []look{{soon, end}, {soon, n.at(nodes.Manageable, "t11")}}, evidenceAbsent},
		"not seen for a long time":                              {true, []look{{soon, erasing}, {late, end}}, evidenceUnread},
		"not seen for a long time, and then at its step":        {true, []look{{soon, erasing}, {late, erasing}, {soon, end}}, evidenceToConfirm},
		"not seen for a long time, and then at an unknown step": {true, []look{{soon, waiting}, {late, waiting}, {soon, end}}, evidenceUnread},
		"cleaned by an operator after its end":                  {true, []look{{soon, end}, {soon, n.at(nodes.CleanWait, "t10")}, {soon, n.at(nodes.Manageable, "t11")}}, evidenceAbsent},
		"an inspection that waits":                              {false, []look{{soon, inspection.at(nodes.InspectWait, "t2")}, {soon, inspection.at(nodes.Manageable, "t3")}}, evidencePresent},
		"an inspection that may be refused":                     {false, []look{{soon, inspection.at(nodes.Manageable, "t1")}, {soon, inspection.at(nodes.Inspecting, "t2")}, {soon, inspection.at(nodes.Manageable, "t3")}}, evidenceAbsent},
	} {
		var s sightings
		if c.isAccepted {
			s.requested(newTestCall(7, workEraseFull), true, testTime)
		}
		if got := s.evidenceAfter(c.looks); got != c.want {
			t.Errorf("%s: expected %s, seen %s", name, c.want, got)
		}
	}
	var s sightings
	s.requested(newTestCall(6, workEraseFull), true, testTime)
	if s.listed(end, testTime.Add(soon)); s.evidenceOf(end) != evidenceUnread {
		t.Error("the cleaning of an earlier attempt proves this one")
	}
	s.requested(newTestCall(7, workEraseFull), false, testTime)
	if s.listed(end, testTime.Add(soon)); s.evidenceOf(end) != evidenceAbsent {
		t.Error("a cleaning that Ironic refused is proven")
	}
}

func TestAnInstallationThatWasSeenIsProvenWithoutARead(t *testing.T) {
	const soon, late = 5 * time.Second, unseenLimit + time.Second
	n := newTestNode(nodes.Available, workInstall, "t1")
	waiting, end := n.at(nodes.DeployWait, "t3"), n.at(nodes.Active, "t9")
	locked := end
	locked.reservation = "conductor-1"
	for name, c := range map[string]struct {
		isAccepted bool
		looks      []look
		want       evidence
	}{
		"accepted, and too short to be listed":        {true, []look{{soon, end}}, evidencePresent},
		"accepted, and seen":                          {true, []look{{soon, n.at(nodes.Deploying, "t2")}, {soon, waiting}, {soon, end}}, evidencePresent},
		"refused, and active by somebody else":        {false, []look{{soon, n}, {soon, end}}, evidenceUnread},
		"a process that starts under way":             {false, []look{{soon, waiting}, {soon, end}}, evidenceUnread},
		"a process that starts after its end":         {false, []look{{soon, end}}, evidenceUnread},
		"taken back by somebody, and deployed again":  {true, []look{{soon, waiting}, {soon, n.at(nodes.Available, "t4")}, {soon, n.at(nodes.Deploying, "t5")}, {soon, end}}, evidenceUnread},
		"not seen for a long time":                    {true, []look{{soon, waiting}, {late, end}}, evidenceUnread},
		"its conductor still has it":                  {true, []look{{soon, locked}}, evidenceUnread},
		"its conductor has let go of it":              {true, []look{{soon, locked}, {soon, end}}, evidencePresent},
		"its power is changed afterwards":             {true, []look{{soon, end}, {soon, locked}}, evidencePresent},
		"its power fails afterwards":                  {true, []look{{soon, end}, {soon, saying(end, "Failed to set the power")}, {late, end}}, evidencePresent},
		"deployed again by an operator afterwards":    {true, []look{{soon, end}, {soon, n.at(nodes.Deploying, "t10")}, {soon, n.at(nodes.Active, "t11")}}, evidenceUnread},
		"a rebuild that leads back to where it began": {true, []look{{soon, saying(n.at(nodes.Active, "t3"), noWorkers)}, {soon, n.at(nodes.Active, "t3")}}, evidenceUnread},
	} {
		var s sightings
		s.listed(n.at(nodes.Available, "t1"), testTime)
		if c.isAccepted {
			s.requested(newTestCall(7, workInstall), true, testTime)
		}
		if got := s.evidenceAfter(c.looks); got != c.want {
			t.Errorf("%s: expected %q, seen %q", name, c.want, got)
		}
	}
}

// TestTheTracesOfWorkProveItToAProcessThatCameTooLate has times of the conductor's notes about a cleaning that was requested at noon and ended ten minutes later.
func TestTheTracesOfWorkProveItToAProcessThatCameTooLate(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	cleaned := func(change func(*nodes.Node)) node {
		finished := noon.Add(10 * time.Minute)
		n := nodes.Node{
			ProvisionState: string(nodes.Manageable), ProvisionUpdatedAt: finished, InspectionFinishedAt: &finished,
			Extra: map[string]any{extraHost: testHost.UID, extraWork: string(workEraseFull), extraFrom: timeText(noon)},
			DriverInternalInfo: map[string]any{
				"agent_cached_clean_steps_refreshed": "2026-11-26T12:03:00.123456", "agent_last_heartbeat": "2026-11-26T12:09:30",
			},
		}
		change(&n)
		return newNode(n)
	}
	inspected := func(n *nodes.Node) { n.Extra[extraWork] = string(workInspect) }
	for name, c := range map[string]struct {
		change func(*nodes.Node)
		want   bool
	}{
		"a cleaning": {func(*nodes.Node) {}, true},
		"an error":   {func(n *nodes.Node) { n.LastError = "Cleaning failed" }, false},
		"steps of an earlier cleaning": {func(n *nodes.Node) {
			n.DriverInternalInfo["agent_cached_clean_steps_refreshed"] = "2026-11-26T11:59:59"
		}, false},
		"an agent that was silent in the end": {func(n *nodes.Node) { n.DriverInternalInfo["agent_last_heartbeat"] = "2026-11-26T12:07:00" }, false},
		"no agent":                            {func(n *nodes.Node) { n.DriverInternalInfo = nil }, false},
		"what is no time":                     {func(n *nodes.Node) { n.DriverInternalInfo["agent_last_heartbeat"] = 7 }, false},
		"an inspection":                       {inspected, true},
		"an inspection of before": {func(n *nodes.Node) {
			inspected(n)
			before := noon.Add(-time.Minute)
			n.InspectionFinishedAt = &before
		}, false},
		"no inspection ever": {func(n *nodes.Node) { inspected(n); n.InspectionFinishedAt = nil }, false},
	} {
		if got := cleaned(c.change).hasTraces(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAnErrorThatAPowerRequestHasClearedIsNoSuccess: an erase that somebody aborted ends where an erase ends, and its error goes with the next request for power.
func TestAnErrorThatAPowerRequestHasClearedIsNoSuccess(t *testing.T) {
	ended := time.Date(2026, 11, 26, 12, 10, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		work    work
		powered any
		want    bool
	}{
		"off before its end":             {workEraseFull, "2026-11-26T12:09:58.500000", false},
		"at its end":                     {workEraseFull, "2026-11-26T12:10:00.900000", false},
		"on after it":                    {workEraseFull, "2026-11-26T12:10:20.100000", true},
		"an Ironic that does not say so": {workEraseFull, nil, false},
		"an inspection":                  {workInspect, "2026-11-26T12:10:20.100000", false},
	} {
		n := newNode(nodes.Node{
			ProvisionState: string(nodes.Manageable), ProvisionUpdatedAt: ended,
			Extra:              map[string]any{extraHost: testHost.UID, extraWork: string(c.work), extraFrom: timeText(ended.Add(-time.Hour))},
			DriverInternalInfo: map[string]any{"last_power_state_change": c.powered},
		})
		if got := n.canHaveLostError(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAListAndASightingOfAClockThatWasSetBackAreOld: nobody knows how long ago they were, so that the list is read again and the work counts as not seen.
func TestAListAndASightingOfAClockThatWasSetBackAreOld(t *testing.T) {
	for age, isFresh := range map[time.Duration]bool{0: true, 9 * time.Second: true, 10 * time.Second: false, -time.Second: false, -24 * time.Hour: false} {
		if got := isWithin(age, 10*time.Second); got != isFresh {
			t.Errorf("an age of %s: fresh %t", age, got)
		}
	}
	seen := sighting{number: 1, isSeen: true, at: testTime}
	for later, isLost := range map[time.Duration]bool{0: false, unseenLimit: false, unseenLimit + time.Second: true, -24 * time.Hour: true} {
		if got := seen.isLost(testTime.Add(later)); got != isLost {
			t.Errorf("seen %s ago: lost %t", later, got)
		}
	}
}
