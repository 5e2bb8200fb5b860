package ironic

import (
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

var (
	testHost = hardware.Host{UID: "uid-1", Namespace: "hall", Name: "a"}
	testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// newTestNode returns the host's node at attempt 7 of the work, which was requested when the node changed at the time from.
func newTestNode(state nodes.ProvisionState, w work, from string) node {
	return node{
		uuid: "u", name: "hall~a", state: state, changed: "t2", power: "power off",
		record: record{host: "uid-1", number: 7, work: w, from: from},
	}
}

// What Ironic says of a node that it had no worker for, and of a cleaning that was aborted.
const (
	noWorkers = "No free conductor workers available"
	aborted   = "By request, the clean operation was aborted"
)

func done(n node) node {
	n.record.outcome = outcomeDone
	return n
}

func saying(n node, lastError string) node {
	n.lastError = lastError
	return n
}

func newTestCall(number int64, w work) call {
	return call{host: testHost, number: number, work: w, now: testTime, deadline: testTime.Add(time.Hour)}
}

func TestTheEndOfAnAttemptNeedsAChangeSinceItsWorkWasRequested(t *testing.T) {
	for name, c := range map[string]struct {
		node   node
		want   hardware.AttemptState
		reason hardware.Reason
	}{
		"an erase that is stored and was never requested":       {newTestNode(nodes.Manageable, workEraseFull, "t2"), hardware.AttemptRunning, ""},
		"an erase that is on its way":                           {newTestNode(nodes.Manageable, workEraseFull, ""), hardware.AttemptRunning, ""},
		"an erase without evidence":                             {newTestNode(nodes.Manageable, workEraseFull, "t1"), hardware.AttemptRunning, ""},
		"an erase that is done":                                 {done(newTestNode(nodes.Manageable, workEraseFull, "t1")), hardware.AttemptSucceeded, ""},
		"an erase of a node that was made available":            {newTestNode(nodes.Available, workEraseFull, "t1"), hardware.AttemptFailed, hardware.ReasonCancelled},
		"a roll that is stored on a node that is active":        {newTestNode(nodes.Active, workInstall, "t2"), hardware.AttemptRunning, ""},
		"a roll without evidence":                               {newTestNode(nodes.Active, workInstall, "t1"), hardware.AttemptRunning, ""},
		"a roll that is done":                                   {done(newTestNode(nodes.Active, workInstall, "t1")), hardware.AttemptSucceeded, ""},
		"a roll that was done before somebody undeployed it":    {done(newTestNode(nodes.Available, workInstall, "t1")), hardware.AttemptFailed, hardware.ReasonCancelled},
		"an install on a node that failed in the one before":    {newTestNode(nodes.DeployFail, workInstall, ""), hardware.AttemptRunning, ""},
		"an install that failed":                                {saying(newTestNode(nodes.DeployFail, workInstall, "t1"), "Failed to prepare to deploy"), hardware.AttemptFailed, hardware.ReasonInstallerFailed},
		"an install that failed, and something wiped the error": {newTestNode(nodes.DeployFail, workInstall, "t1"), hardware.AttemptRunning, ""},
		"an install whose node somebody undeployed":             {newTestNode(nodes.Available, workInstall, "t1"), hardware.AttemptRunning, ""},
		"an install above the workers":                          {saying(newTestNode(nodes.Available, workInstall, "t1"), noWorkers), hardware.AttemptRunning, ""},
		"another install above the workers":                     {saying(newTestNode(nodes.DeployFail, workInstall, "t1"), noWorkers), hardware.AttemptRunning, ""},
		"an inspection above the workers":                       {saying(newTestNode(nodes.InspectFail, workInspect, "t1"), noWorkers), hardware.AttemptRunning, ""},
		"an erase that somebody aborted":                        {saying(newTestNode(nodes.CleanFail, workEraseFull, "t1"), aborted), hardware.AttemptRunning, ""},
		"a release of a node that is active and off":            {newTestNode(nodes.Active, workEraseNone, ""), hardware.AttemptRunning, ""},
		"a release of a node that is undeployed and off":        {newTestNode(nodes.Available, workEraseNone, ""), hardware.AttemptRunning, ""},
		"a release of a node that nobody else can schedule":     {newTestNode(nodes.Manageable, workEraseNone, ""), hardware.AttemptSucceeded, ""},
		"an inspection that is done, on a server that is left":  {done(newTestNode(nodes.Manageable, workInspect, "t1")), hardware.AttemptSucceeded, ""},
		"an inspection without evidence":                        {newTestNode(nodes.Manageable, workInspect, "t1"), hardware.AttemptRunning, ""},
	} {
		if got := statusOf(c.node); got.State != c.want || got.Reason != c.reason || got.Number != 7 {
			t.Errorf("%s: expected %s %s, seen %+v", name, c.want, c.reason, *got)
		}
	}
	on := done(newTestNode(nodes.Manageable, workEraseFull, "t1"))
	on.power = "power on"
	if got := statusOf(on); got.State != hardware.AttemptRunning {
		t.Errorf("an erase whose server is on: %+v", *got)
	}
}

func TestANodeOfSomebodyElseIsNeverTouched(t *testing.T) {
	foreign, other, assigned := newTestNode(nodes.Active, "", ""), newTestNode(nodes.Available, workInstall, "t1"), newTestNode(nodes.Available, "", "")
	foreign.record, assigned.record = record{}, record{}
	assigned.instanceUUID = "an instance of nova"
	other.record.host = "uid-2"
	// What the list shows after another system has taken a node that is ours.
	stolen, waiting, adopted := newTestNode(nodes.Active, workInstall, "t1"), newTestNode(nodes.DeployWait, workInstall, "t1"), newTestNode(nodes.DeployWait, "", "")
	stolen.instanceUUID, stolen.record.instance = "an instance of nova", "ours"
	waiting.instanceUUID = "an instance of nova"
	adopted.record.number = 0
	for name, n := range map[string]node{
		"deployed by people": foreign, "of another host": other, "assigned": assigned, "assigned since": stolen, "assigned since an earlier version": waiting,
		"adopted, and deployed before any attempt": adopted,
	} {
		for _, w := range []work{workInstall, workEraseFull, workInspect} {
			next := nextAction(n, newTestCall(8, w))
			if next.kind != actionRefuse || hardware.KindOf(next.err) != hardware.Conflict {
				t.Errorf("%s: %s is answered by %+v", name, w, next)
			}
		}
		if next := nextCancel(n, newTestCall(8, "")); next.kind != actionRefuse {
			t.Errorf("%s: a cancel is answered by %+v", name, next)
		}
	}
}

func TestANodeThatIsReservedForTheHostOrNeverWasIsItsOwn(t *testing.T) {
	reserved, earlier := newTestNode(nodes.Active, workInstall, "t1"), newTestNode(nodes.Active, workInstall, "t1")
	reserved.instanceUUID, reserved.record.instance = "ours", "ours"
	cleaned := newTestNode(nodes.Cleaning, "", "") // it is made available for its first installation
	cleaned.record.number, cleaned.instanceUUID, cleaned.record.instance = 0, "ours", "ours"
	for name, n := range map[string]node{"reserved": reserved, "of an earlier version": earlier, "before its first attempt": cleaned} {
		if next := nextAction(n, newTestCall(8, workInstall)); next.kind == actionRefuse {
			t.Errorf("%s: refused: %v", name, next.err)
		}
	}
}

func TestANodeIsThatOfAHostThatWasCreatedAgain(t *testing.T) {
	n, c := newTestNode(nodes.Active, workInstall, "t1"), newTestCall(8, workEraseFull)
	n.record.host = "uid-before"
	if next := nextAction(n, c); next.kind != actionRefuse {
		t.Errorf("a host that nobody knows to be the same: %+v", next)
	}
	c.host.FormerUIDs = []string{"uid-before"}
	if next := nextAction(n, c); next.kind != actionBegin {
		t.Errorf("a host with that former UID: %+v", next)
	}
}

func TestStatesThatNothingLeadsOutOfAreTold(t *testing.T) {
	abandoned := newTestNode(nodes.Deploying, workInstall, "t1")
	abandoned.changed = timeText(testTime.Add(-abandonedAfter - time.Second))
	held := abandoned
	held.reservation = "conductor-1"
	for name, c := range map[string]struct {
		node node
		want actionKind
	}{
		"people have booted a rescue system":      {newTestNode(nodes.Rescue, workInstall, "t1"), actionRefuse},
		"a step that people have put on hold":     {newTestNode(nodes.CleanHold, workEraseFull, "t1"), actionRefuse},
		"a deployment that no conductor works on": {abandoned, actionRefuse},
		"a long deployment":                       {held, actionWait},
	} {
		if got := nextAction(c.node, newTestCall(8, workInstall)); got.kind != c.want {
			t.Errorf("%s: expected %s, seen %+v", name, c.want, got)
		}
	}
}

func TestAStateThatNoWorkOfOursLeadsToIsTold(t *testing.T) {
	for _, state := range []nodes.ProvisionState{
		nodes.Rescuing, nodes.RescueWait, nodes.Rescue, nodes.RescueFail, nodes.Unrescuing, nodes.UnrescueFail, nodes.Servicing, nodes.ServiceWait, nodes.ServiceFail, nodes.ServiceHold,
		nodes.Adopting, nodes.AdoptFail, nodes.DeployHold, nodes.CleanHold, "a state of a later Ironic",
	} {
		for _, next := range []action{nextAction(newTestNode(state, workInstall, "t1"), newTestCall(8, workEraseFull)), nextCancel(newTestNode(state, workInstall, "t1"), newTestCall(7, ""))} {
			if next.kind != actionRefuse || hardware.ReasonOf(next.err) != hardware.ReasonInstallerConflict || !strings.Contains(next.err.Error(), string(state)) {
				t.Errorf("%s: expected a refusal that names the state, seen %+v", state, next)
			}
		}
	}
	for _, state := range []nodes.ProvisionState{
		nodes.Enroll, nodes.Verifying, nodes.Manageable, nodes.Available, nodes.Deploying, nodes.DeployWait, nodes.DeployFail, nodes.Active, nodes.Deleting, nodes.Error, nodes.Cleaning,
		nodes.CleanWait, nodes.CleanFail, nodes.Inspecting, nodes.InspectWait, nodes.InspectFail,
	} {
		if next := nextAction(newTestNode(state, workInstall, "t1"), newTestCall(8, workEraseFull)); next.kind == actionRefuse {
			t.Errorf("%s: refused: %v", state, next.err)
		}
	}
}

func TestAProtectedNodeIsTouchedByNoRollAndNoRelease(t *testing.T) {
	n := newTestNode(nodes.Active, workInstall, "t1")
	n.isProtected, n.power = true, "power on"
	for _, w := range []work{workInstall, workEraseNone, workEraseMetadata, workEraseFull} {
		for _, number := range []int64{8, 7} {
			n.record.number, n.record.work, n.record.from = 7, w, ""
			next := nextAction(n, newTestCall(number, w))
			if next.kind != actionRefuse || hardware.ReasonOf(next.err) != hardware.ReasonInstallerConflict || !strings.Contains(next.err.Error(), "baremetal node unset --protected u") {
				t.Errorf("%s of attempt %d: expected a refusal that says how to go on, seen %+v", w, number, next)
			}
		}
	}
	n.record.work, n.record.from, n.record.outcome = workInstall, "t1", outcomeDone
	if next := nextAction(n, newTestCall(7, workInstall)); next.kind != actionWait {
		t.Errorf("a node that was protected after its install: %+v", next)
	}
	if _, err := nextPower(n, hardware.PowerChange{Desired: hardware.PowerOff, Since: testTime}, true, hardware.DefaultTimeouts(), testTime); err != nil {
		t.Errorf("its power: %v", err)
	}
}

func TestAMaintenanceThatFollowsFromFailedWorkEndsWithTheNextAttempt(t *testing.T) {
	n := newTestNode(nodes.CleanFail, workEraseFull, "")
	n.maintenance, n.fault = true, faultClean
	if next := nextAction(n, newTestCall(7, workEraseFull)); next.kind != actionRelieve {
		t.Errorf("expected the end of the maintenance, seen %+v", next)
	}
	if err := maintenanceOf(n, testHost); err != nil {
		t.Errorf("the host is not to be used: %v", err)
	}
	n.fault = ""
	if next := nextAction(n, newTestCall(7, workEraseFull)); next.kind != actionWait {
		t.Errorf("people have put it in maintenance, seen %+v", next)
	}
	if maintenanceOf(n, testHost) == nil {
		t.Error("people have put it in maintenance, and nobody is told")
	}
}

func TestABMCThatIronicCannotUseEndsTheAttempt(t *testing.T) {
	n := newTestNode(nodes.Enroll, workInspect, "")
	n.lastError, n.record.enrolled = "Failed to get power state for node u. Error: Invalid user or password", "t2"
	if got := statusOf(n); got.State != hardware.AttemptRunning {
		t.Errorf("an error of an earlier attempt: %+v", *got)
	}
	n.record.enrolled = "t1"
	if got := statusOf(n); got.State != hardware.AttemptFailed || got.Reason != hardware.ReasonInstallerPowerFailure {
		t.Errorf("expected the failure to verify, seen %+v", *got)
	}
	n.lastError = noWorkers
	if got := statusOf(n); got.State != hardware.AttemptRunning || !got.IsRefusedByLimit {
		t.Errorf("nobody has looked at the BMC, seen %+v", *got)
	}
	if got := nextAction(n, newTestCall(7, workInspect)); got.kind != actionManage {
		t.Errorf("expected another request, seen %+v", got)
	}
	n.lastError = "The verifying state can't be resumed by conductor a. Moving to fail state."
	if got, next := statusOf(n), nextAction(n, newTestCall(7, workInspect)); got.State != hardware.AttemptRunning || next.kind != actionManage {
		t.Errorf("its conductor was started again: %+v, and then %+v", *got, next)
	}
}

func TestWholeSecondsOfAConductorAreNoChange(t *testing.T) {
	before := newTestNode(nodes.Manageable, workInspect, "")
	before.changed = "2026-01-02T03:04:05.678901Z"
	for short, want := range map[string]string{"2026-01-02T03:04:05Z": before.changed, "2026-01-02T03:04:06Z": "2026-01-02T03:04:06Z"} {
		after := before
		after.changed = short
		if got := after.withTimeOf(before).changed; got != want {
			t.Errorf("%s: expected %s, seen %s", short, want, got)
		}
	}
}

func TestEachStateLeadsToTheWork(t *testing.T) {
	running := newTestNode(nodes.Active, workInstall, "")
	running.power = "power on"
	late := newTestCall(7, workInstall)
	late.now = late.deadline
	maintained := newTestNode(nodes.Available, workInstall, "")
	maintained.maintenance = true
	for name, c := range map[string]struct {
		node node
		call call
		want action
	}{
		"a new attempt on a node at rest":             {newTestNode(nodes.Active, workInstall, "t1"), newTestCall(8, workInstall), action{kind: actionBegin}},
		"a new install makes the node available":      {newTestNode(nodes.Manageable, workInspect, "t1"), newTestCall(8, workInstall), action{kind: actionProvide}},
		"a new attempt ends the wait of the old":      {newTestNode(nodes.DeployWait, workInstall, "t1"), newTestCall(8, workInstall), action{kind: actionRequest, target: nodes.TargetDeleted}},
		"a new attempt waits for the conductor":       {newTestNode(nodes.Deploying, workInstall, "t1"), newTestCall(8, workInstall), action{kind: actionWait}},
		"an old attempt that comes late":              {newTestNode(nodes.Active, workInstall, "t1"), newTestCall(6, workInstall), action{kind: actionRefuse}},
		"other work under the same number":            {newTestNode(nodes.Deploying, workInstall, "t1"), newTestCall(7, workEraseFull), action{kind: actionRefuse}},
		"an install on a free node":                   {newTestNode(nodes.Available, workInstall, ""), newTestCall(7, workInstall), action{kind: actionPrepare, target: nodes.TargetActive}},
		"an install whose request was lost":           {newTestNode(nodes.Available, workInstall, "t2"), newTestCall(7, workInstall), action{kind: actionPrepare, target: nodes.TargetActive}},
		"a roll of a node that runs":                  {running, newTestCall(7, workInstall), action{kind: actionPower}},
		"a roll of a node that is off":                {newTestNode(nodes.Active, workInstall, ""), newTestCall(7, workInstall), action{kind: actionPrepare, target: nodes.TargetRebuild}},
		"an erase of a deployed node":                 {newTestNode(nodes.Active, workEraseFull, ""), newTestCall(7, workEraseFull), action{kind: actionRequest, target: nodes.TargetDeleted}},
		"an erase after a lock has failed a release":  {newTestNode(nodes.Error, workEraseFull, ""), newTestCall(7, workEraseFull), action{kind: actionRequest, target: nodes.TargetDeleted}},
		"an erase that is done":                       {done(newTestNode(nodes.Manageable, workEraseFull, "t1")), newTestCall(7, workEraseFull), action{kind: actionWait}},
		"a deadline that passes in a wait":            {newTestNode(nodes.DeployWait, workInstall, "t1"), late, action{kind: actionRequest, target: nodes.TargetDeleted}},
		"a deadline that passes before the work":      {newTestNode(nodes.Available, workInstall, ""), late, action{kind: actionEnd, outcome: hardware.ReasonDeadlineExceeded}},
		"a node that people have put in maintenance":  {maintained, newTestCall(7, workInstall), action{kind: actionWait}},
		"an inspection after one that failed":         {newTestNode(nodes.InspectFail, workInspect, ""), newTestCall(7, workInspect), action{kind: actionPrepare, target: nodes.TargetInspect}},
		"an inspection of a node that is deployed":    {newTestNode(nodes.Active, workInstall, "t1"), newTestCall(8, workInspect), action{kind: actionRefuse}},
		"a release of nothing powers a free node off": {func() node { n := running; n.state, n.record.work = nodes.Available, workEraseNone; return n }(), newTestCall(7, workEraseNone), action{kind: actionPower}},
	} {
		got := nextAction(c.node, c.call)
		got.err = nil
		if got != c.want {
			t.Errorf("%s: expected %+v, seen %+v", name, c.want, got)
		}
	}
}

func TestACancelWaitsForTheConductorStoresItsOutcomeAndThenCutsThePower(t *testing.T) {
	off := newTestNode(nodes.Available, workInstall, "t1")
	off.record.outcome = hardware.ReasonCancelled
	on := off
	on.power = "power on"
	for name, c := range map[string]struct {
		node node
		want action
	}{
		"deploying":               {newTestNode(nodes.Deploying, workInstall, "t1"), action{kind: actionWait}},
		"waiting for the agent":   {newTestNode(nodes.DeployWait, workInstall, "t1"), action{kind: actionRequest, target: nodes.TargetDeleted}},
		"cleaning waits":          {newTestNode(nodes.CleanWait, workEraseFull, "t1"), action{kind: actionRequest, target: nodes.TargetAbort}},
		"not begun":               {newTestNode(nodes.Available, workInstall, ""), action{kind: actionEnd, outcome: hardware.ReasonCancelled}},
		"undeployed, still on":    {on, action{kind: actionPower}},
		"undeployed, not stored":  {newTestNode(nodes.Available, workInstall, "t1"), action{kind: actionEnd, outcome: hardware.ReasonCancelled}},
		"aborted, not stored":     {saying(newTestNode(nodes.CleanFail, workEraseFull, "t1"), aborted), action{kind: actionEnd, outcome: hardware.ReasonCancelled}},
		"undeployed and off":      {off, action{kind: actionWait}},
		"inspected, whatever set": {done(newTestNode(nodes.Manageable, workInspect, "t1")), action{kind: actionWait}},
	} {
		if got := nextCancel(c.node, newTestCall(7, "")); got != c.want {
			t.Errorf("%s: expected %+v, seen %+v", name, c.want, got)
		}
	}
}

func TestAPowerChangeThatIronicCannotMakeIsIgnoredAfterItsTime(t *testing.T) {
	timeouts := hardware.DefaultTimeouts()
	n := newTestNode(nodes.Active, workInstall, "t1")
	change := hardware.PowerChange{Desired: hardware.PowerOn, Since: testTime}
	if request, err := nextPower(n, change, true, timeouts, testTime); !request || err != nil {
		t.Errorf("at once: %v, %v", request, err)
	}
	request, err := nextPower(n, change, true, timeouts, testTime.Add(timeouts.PowerOn+time.Second))
	if !request || hardware.KindOf(err) != hardware.Ignored || hardware.ReasonOf(err) != hardware.ReasonPowerOnIgnored {
		t.Errorf("after its time: %v, %v", request, err)
	}
	n.targetPower = "power on"
	if request, _ := nextPower(n, change, true, timeouts, testTime); request {
		t.Error("it is requested while Ironic is at it")
	}
	n.targetPower, n.power = "", "power on"
	if _, err := nextPower(n, change, false, timeouts, testTime.Add(timeouts.PowerOn+time.Second)); err == nil || !strings.Contains(err.Error(), "has answered no request for it") {
		t.Errorf("the power that it remembers: %v", err)
	}
}

func TestAnInstallationIsPreparedOnce(t *testing.T) {
	reserved := func(state nodes.ProvisionState, from string) node {
		n := newTestNode(state, workInstall, from)
		n.instanceUUID = "i"
		return n
	}
	for name, c := range map[string]struct {
		node node
		want bool
	}{
		"where it was stored":                    {reserved(nodes.Manageable, "t2"), true},
		"made available since":                   {reserved(nodes.Available, "t1"), true},
		"undeployed by somebody":                 {newTestNode(nodes.Available, workInstall, "t1"), false},
		"led back to where it was, by somebody":  {reserved(nodes.Manageable, "t1"), false},
		"led back by Ironic for want of workers": {saying(reserved(nodes.Manageable, "t1"), noWorkers), true},
		"nothing is stored":                      {reserved(nodes.Available, ""), false},
		"after a deployment that failed":         {reserved(nodes.DeployFail, "t1"), false},
	} {
		if got := isPrepared(c.node, newTestCall(7, workInstall)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if isPrepared(reserved(nodes.Available, "t1"), newTestCall(8, workInstall)) {
		t.Error("what another attempt needs is prepared")
	}
}
