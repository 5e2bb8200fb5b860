package host

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// world is a server with its installer, a machine controller that makes random requests, and a process that loses effects.
type world struct {
	t    *testing.T
	rand *rand.Rand
	now  time.Time

	host   Host
	spec   v1alpha1.HostRecordSpec
	record v1alpha1.HostRecordStatus

	power     hardware.PowerState
	attempt   hardware.AttemptStatus
	operation hardware.Operation
	// byAgent is true in a world whose NodeProvider has the agent inspect, looking while its attempt does that, and looked once it has.
	byAgent, looking, looked bool
	// data is true while a tenant's bytes are on the disk, erasing while an erase has begun and is not complete.
	data, erasing bool
	// needsRelease is true in a world whose installer must be told of a release, deployed while it keeps what it has installed, and releasing while its
	// attempt is the erase of nothing.
	needsRelease, deployed, releasing bool
	bmcDown                           bool
	// duplicated is true while another host is the same server.
	duplicated bool
	calm       bool
	claims     int
	retries    int
	highest    int64
	// taken counts the edges that all histories have followed. statusLost is true after the status of the host was lost.
	taken      map[*edge]int
	statusLost bool
	trace      []func() string
}

func newWorld(t *testing.T, seed int64, taken map[*edge]int) *world {
	w := &world{t: t, rand: rand.New(rand.NewSource(seed)), now: noon, power: hardware.PowerOff, taken: taken}
	w.host.Generation = 1
	w.byAgent, w.needsRelease = seed%3 == 0, seed%2 == 0
	switch seed % 10 {
	case 0:
		w.host.ExternallyProvisioned = true
	case 1:
		w.host.Status.State, w.data = "matching", w.rand.Intn(2) == 0 // of another system
	}
	return w
}

func (w *world) chance(percent int) bool { return !w.calm && w.rand.Intn(100) < percent }

func (w *world) logf(format string, args ...any) {
	now := w.now
	w.trace = append(w.trace, func() string { return now.Format("15:04:05 ") + fmt.Sprintf(format, args...) })
	if len(w.trace) > 40 {
		w.trace = w.trace[1:]
	}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace {
		w.t.Log(line())
	}
	w.t.Fatalf(format, args...)
}

// changeSpec makes a random change as the machine controller or an administrator makes it, in the machine controller's order.
func (w *world) changeSpec() {
	h := &w.host
	switch {
	case !h.Claimed && h.Status.State == metal3.StateAvailable && h.Status.ErrorType == "" && !w.host.Deleting && w.rand.Intn(4) == 0 && !w.calm:
		w.claims++
		h.Claimed, h.ConsumerUID = true, fmt.Sprint("m", w.claims)
	case h.Claimed && w.spec.Machine == nil && h.Status.State == metal3.StateAvailable:
		i := image
		w.spec = v1alpha1.HostRecordSpec{Machine: &v1alpha1.MachineReference{UID: types.UID(h.ConsumerUID)}, Attempt: 1, Image: &i,
			Tenant: fmt.Sprint("t/", w.claims), Erase: []v1alpha1.EraseMode{"", v1alpha1.EraseMetadata, v1alpha1.EraseFull, v1alpha1.EraseNone}[w.rand.Intn(4)]}
		h.HasImage, h.Online = true, true
		h.Generation++
	case h.HasImage && (w.calm || w.chance(2)):
		h.HasImage = false
		h.Generation++
	case h.Claimed && w.spec.Machine != nil && !h.HasImage && h.Status.State == metal3.StateAvailable && w.chance(30):
		// The image was taken off and is put back.
		h.HasImage, h.Online = true, true
		h.Generation++
	case h.Claimed && w.spec.Machine != nil && !h.HasImage && h.Status.State == metal3.StateAvailable:
		h.Claimed, h.ConsumerUID, w.spec = false, "", v1alpha1.HostRecordSpec{}
	case w.chance(1):
		h.Online = !h.Online
		h.Generation++
	case h.HasImage && w.chance(2):
		w.spec.Attempt++
	case w.chance(1) && w.spec.Machine != nil:
		// An administrator removes the claim during an attempt.
		h.Claimed, h.ConsumerUID, w.spec = false, "", v1alpha1.HostRecordSpec{}
	case !h.Claimed && h.Status.State == metal3.StateAvailable && w.chance(3):
		h.Erase = "Metadata"
	case w.record.Failures > 0 && (w.calm || w.chance(10)):
		w.retries++
		h.Retry = fmt.Sprint(w.retries)
	}
	w.makeRareChange()
	if w.chance(3) {
		w.bmcDown = !w.bmcDown
	}
	if w.chance(2) {
		w.duplicated = !w.duplicated
	}
	if w.calm && strings.HasPrefix(h.Status.ErrorMessage, v1alpha1.ReasonServerIsOn) {
		w.power = hardware.PowerOff // an administrator does as the error says
	}
	if w.calm {
		w.bmcDown, w.duplicated, h.Online = false, false, h.Online && h.HasImage
	}
}

// isKept reports whether the policy None left the data of a tenant on the disks.
func isKept(r v1alpha1.HostRecordStatus) bool {
	return r.Erased != nil && r.Erased.Mode == v1alpha1.EraseNone
}

// isRunning reports whether a Machine runs on what was installed for it, and no erase was begun since.
func isRunning(f Facts) bool {
	in, w := f.Record.Installed, f.Record.Wanted
	return f.Host.HasImage && f.Host.Claimed && f.Spec.Machine != nil && f.Host.ConsumerUID == string(f.Spec.Machine.UID) &&
		in != nil && in.MachineUID == f.Spec.Machine.UID && w != nil && w.Operation == string(hardware.OpInstall)
}

// makeRareChange makes a change that happens seldom.
func (w *world) makeRareChange() {
	h := &w.host
	switch {
	case h.ExternallyProvisioned && (w.calm || w.chance(5)), !h.ExternallyProvisioned && !h.Claimed && w.chance(1):
		h.ExternallyProvisioned = !h.ExternallyProvisioned
	case !w.statusLost && !w.erasing && w.record.Inventory != nil && !w.record.Wanted.IsOpen() && w.chance(2):
		// The status was lost, or restored from an old backup, and the record is still there.
		w.statusLost, h.Status = true, Status{State: []metal3.ProvisioningState{metal3.StateNone, metal3.StateInspecting, metal3.StateAvailable, metal3.StatePreparing, "matching"}[w.rand.Intn(5)]}
	case h.Status.State == metal3.StateAvailable && !h.Claimed && w.chance(2):
		h.InspectionRequested = true
	case w.calm:
		h.InspectionRequested = false
	}
}

// runAction is the reference installer.
func (w *world) runAction(a Action) {
	if w.bmcDown || w.chance(10) {
		return // refused, or lost
	}
	switch a.Kind {
	case ActionSetPower:
		if !w.chance(20) {
			w.power = a.Power.Desired
		}
	case ActionCancel:
		if w.attempt.State == hardware.AttemptRunning || w.attempt.Number < a.Attempt.Number {
			w.attempt = hardware.AttemptStatus{Number: a.Attempt.Number, State: hardware.AttemptFailed, Reason: hardware.ReasonCancelled}
			w.erasing = false
		}
		w.power = hardware.PowerOff
	case ActionInspect, ActionInstall, ActionErase:
		if a.Attempt.Number > w.attempt.Number {
			w.attempt = hardware.AttemptStatus{Number: a.Attempt.Number, State: hardware.AttemptRunning}
			w.operation, w.looking, w.releasing = hardware.Operation(a.Kind), a.Inspector == hardware.InspectByAgent, a.Erase == hardware.EraseNone
			if w.looking && w.power == hardware.PowerOn {
				w.attempt.State, w.attempt.Reason = hardware.AttemptFailed, hardware.ReasonServerIsOn
			}
		} else if a.Attempt.Number < w.attempt.Number {
			w.fail("attempt %d after attempt %d", a.Attempt.Number, w.attempt.Number)
		}
		w.advance()
	}
}

// advance does one step of the attempt.
func (w *world) advance() {
	if w.attempt.State != hardware.AttemptRunning {
		return
	}
	switch w.operation {
	case hardware.OpInstall:
		w.data, w.deployed, w.power = true, true, hardware.PowerOn
	case hardware.OpErase:
		if !w.releasing {
			w.erasing, w.power = true, hardware.PowerOn
		}
	case hardware.OpInspect:
		if w.looking {
			w.power = hardware.PowerOn
		}
	}
	switch w.rand.Intn(6) {
	case 0:
		w.attempt.State, w.attempt.Reason = hardware.AttemptFailed, hardware.ReasonDiskError
		if w.calm {
			w.attempt.State = hardware.AttemptRunning
		}
	case 1, 2:
		w.attempt.State = hardware.AttemptSucceeded
		if w.looking {
			w.power, w.looked = hardware.PowerOff, true
		}
		if w.operation == hardware.OpErase {
			w.data, w.erasing, w.deployed = w.data && w.releasing, w.erasing && w.releasing, false
			if !w.chance(30) {
				w.power = hardware.PowerOff
			}
		}
	}
}

// isBootWrong reports whether something else than the boot service answers at its address: for one minute of seven.
func (w *world) isBootWrong() bool { return !w.calm && w.now.Minute()%7 == 0 }

func (w *world) facts() Facts {
	f := Facts{Clock: watched.Clock{Now: w.now}, Random: w.rand.Float64(), Timeouts: DefaultTimeouts(), Host: w.host, Spec: w.spec, Record: *w.record.DeepCopy(), ErasePolicy: v1alpha1.EraseMetadata}
	f.NeedsRelease = w.needsRelease
	seen := w.attempt
	f.Observed = &hardware.Observation{Power: w.power}
	if seen.Number > 0 {
		f.Observed.Attempt = &seen
	}
	if w.byAgent {
		f.Inspector = v1alpha1.SourceAgent
	}
	if w.bmcDown {
		f.Observed.Power, f.Problem = hardware.PowerUnknown, &Problem{Reason: "BMCUnreachable", Message: "down"}
	}
	if w.isBootWrong() {
		f.BootProblem = "something else answers"
	}
	if w.duplicated {
		duplicate(&f)
	}
	if Plan(f).NeedsGrant {
		f.Grant = &breaker.Answer{IsGranted: w.calm || w.now.Minute()%3 == 0, Wait: time.Minute, Cause: &breaker.Cause{Act: breaker.Erase}}
	}
	return f
}

// reconcile runs one reconcile, and is sometimes interrupted.
func (w *world) reconcile() {
	f := w.facts()
	d := Plan(f)
	w.check(f, d)
	w.logf("%s -> %s action %q error %q attempt %+v", f.Host.Status.State, d.Status.State, d.Action.Kind, d.Status.ErrorMessage, d.Record.Wanted)
	if w.chance(5) {
		return
	}
	w.record = d.Record
	if w.chance(5) {
		return
	}
	w.runAction(d.Action)
	if w.chance(5) {
		return
	}
	for _, a := range d.RemoveAnnotations {
		switch a {
		case AnnotationErase:
			w.host.Erase = ""
		case AnnotationInspect:
			w.host.InspectionRequested = false
		}
	}
	w.host.Status = d.Status
	w.now = w.now.Add(min(max(d.RequeueAfter, time.Second), time.Minute))
}

func (w *world) check(f Facts, d Decision) {
	before, after := f.Host.Status.State, d.Status.State
	entered := map[metal3.ProvisioningState]bool{}
	for _, e := range d.followed {
		w.taken[e]++
		if entered[e.to] {
			w.fail("a circle: %s is entered twice", e.to)
		}
		entered[e.to] = true
	}
	if !equality.Semantic.DeepEqual(f.Record.Attempt, d.Record.Attempt) {
		w.fail("the installer's state is changed to %+v", d.Record.Attempt)
	}
	isUnknown := d.Record.LastTenant == unknownTenant && d.Record.Erased == nil && d.Record.Installed == nil
	isBegun := f.Record.Wanted != nil && f.Record.Wanted.Operation == string(hardware.OpErase) && f.Record.Wanted.Outcome != v1alpha1.AttemptSucceeded
	isAsked := f.Host.Deleting || f.Host.Erase == "Full" || f.Host.Erase == "Metadata"
	switch {
	case isUnknown && !isBegun && !isAsked && f.Host.ExternallyProvisioned && !f.Host.Claimed && d.Action.Kind == ActionErase:
		w.fail("somebody else installs it, and it is erased")
	case isUnknown && !isBegun && !isAsked && after == metal3.StateDeprovisioning && d.Action.Kind != ActionNone && (f.Grant == nil || !f.Grant.IsGranted):
		w.fail("action %s on a host of unknown content without a grant", d.Action.Kind)
	case w.duplicated && d.Action.Kind != ActionNone:
		w.fail("action %s while another host is the same server", d.Action.Kind)
	case d.Action.Kind == ActionInstall && (f.Spec.Machine == nil || !f.Host.Claimed || f.Host.ConsumerUID != string(f.Spec.Machine.UID)):
		w.fail("an installation without a claim")
	case after == metal3.StateAvailable && (w.data && !isKept(d.Record) || w.erasing) && before != metal3.StateAvailable:
		w.fail("available with data %v, erasing %v", w.data, w.erasing)
	case after == metal3.StateAvailable && w.deployed && w.needsRelease && before != metal3.StateAvailable:
		w.fail("available while the installer keeps it as deployed")
	case after == metal3.StateAvailable && f.Host.Claimed && w.data && d.Action.Kind == ActionInstall:
		w.fail("installing while available")
	case before == metal3.StateProvisioned && after == metal3.StateDeprovisioning && f.Host.HasImage:
		w.fail("a provisioned host was taken down: %s", d.Status.ErrorMessage)
	case before != metal3.StateDeprovisioning && after == metal3.StateDeprovisioning && isRunning(f):
		w.fail("a host is taken down from %q under its Machine", before)
	case before == metal3.StateInspecting && after == metal3.StateAvailable && w.byAgent && !w.looked && !f.Host.Claimed && !f.Host.ExternallyProvisioned && !f.Host.HasImage && !f.Host.InspectionDisabled:
		w.fail("available before the agent has looked")
	case d.Action.Inspector == hardware.InspectByAgent && (f.Host.Claimed || w.data && !isKept(d.Record)):
		w.fail("the agent is booted to look at a host that somebody uses")
	case d.Action.Kind == ActionErase && after != metal3.StateDeprovisioning && after != metal3.StatePreparing:
		w.fail("an erase in state %s", after)
	case d.Action.Kind != ActionNone && f.Record.Wanted != nil && d.Record.Wanted.Number != f.Record.Wanted.Number:
		w.fail("an effect before its intent")
	case f.BootProblem != "" && d.Record.Wanted.IsOpen() && !f.Record.Wanted.IsOpen() && d.Record.Wanted.Erase != v1alpha1.EraseNone:
		w.fail("attempt %+v begins while something else answers at the boot address", d.Record.Wanted)
	}
	if a := d.Record.Wanted; a != nil {
		if old := f.Record.Wanted; old != nil && a.Number != old.Number && a.Number <= w.highest {
			w.fail("number %d was used before, up to %d", a.Number, w.highest)
		}
		if a.IsOpen() && d.Action.Kind != ActionNone {
			w.highest = max(w.highest, a.Number)
		}
	}
	if d.RequeueAfter <= 0 && !d.RemoveFinalizer {
		w.fail("nothing brings the host back")
	}
}

// TestNoHistoryMakesADirtyHostAvailable runs the planner with lost effects, failing disks, BMCs that do not answer and random requests, and then
// without faults, until every host is available again.
func TestNoHistoryMakesADirtyHostAvailable(t *testing.T) {
	const histories, steps = 500, 150
	installs, erases, taken := 0, 0, map[*edge]int{}
	for seed := range int64(histories) {
		w := newWorld(t, seed, taken)
		w.logf("seed %d", seed)
		if seed%20 == 2 {
			w.host.InspectionDisabled = true
			w.remove()
			continue
		}
		for range steps {
			w.changeSpec()
			w.reconcile()
			if w.record.Installed != nil {
				installs++
			}
			if w.record.Erased != nil {
				erases++
			}
		}
		w.calm = true
		for range 400 {
			w.changeSpec()
			w.reconcile()
		}
		if w.host.Status.State != metal3.StateAvailable || w.data && !isKept(w.record) {
			w.fail("seed %d does not settle: %+v", seed, w.host.Status)
		}
		w.remove()
	}
	for _, table := range [][]edge{removalEdges, edges} {
		for i, e := range table {
			if taken[&table[i]] == 0 {
				t.Errorf("no history goes from %s to %s because %q: nothing shows that the edge is needed, or the world is too kind", e.from, e.to, e.when)
			}
		}
	}
	if installs < histories || erases < histories {
		t.Errorf("the histories show too little: %d steps with an installation, %d with a proof", installs, erases)
	}
}

// remove deletes the host at some point of its life, and runs until it is removed. Only a detached host may be removed with a tenant's data.
func (w *world) remove() {
	w.calm = w.rand.Intn(2) == 0
	for range w.rand.Intn(60) {
		w.changeSpec()
		w.reconcile()
	}
	h := &w.host
	if !h.Claimed && h.Status.State == metal3.StateAvailable {
		h.Erase = "Metadata"
		for range w.rand.Intn(6) {
			w.reconcile()
		}
	}
	if w.rand.Intn(3) == 0 {
		w.power = hardware.PowerOn // an administrator powered it on
	}
	h.Deleting, h.ExternallyProvisioned, h.InspectionRequested, h.Erase = true, false, false, ""
	h.Detached = w.rand.Intn(4) == 0
	if !h.Detached {
		h.Claimed, h.ConsumerUID, h.HasImage, w.spec = false, "", false, v1alpha1.HostRecordSpec{}
	}
	for range 400 {
		w.bmcDown, w.duplicated = w.rand.Intn(10) == 0, w.rand.Intn(10) == 0
		if w.record.Failures > 0 {
			w.retries++
			h.Retry = fmt.Sprint(w.retries)
		}
		if leaving := h.Status.State == metal3.StatePoweringOffBeforeDelete || h.Status.State == metal3.StateDeleting; leaving && w.rand.Intn(2) == 0 {
			w.claimAgain()
		}
		f := w.facts()
		if d := Plan(f); d.RemoveFinalizer {
			w.check(f, d)
			if w.data && !h.Detached && !isKept(d.Record) {
				w.fail("gone with a tenant's data")
			}
			if w.deployed && w.needsRelease && !h.Detached {
				w.fail("gone while the installer keeps it as deployed")
			}
			return
		}
		w.reconcile()
	}
	w.fail("the host does not go: %+v", h.Status)
}

// claimAgain has a Machine claim a host that is about to be removed, and return it after a while.
func (w *world) claimAgain() {
	h := &w.host
	if h.Detached {
		return
	}
	h.Claimed = true
	for range 5 {
		w.reconcile()
	}
	h.Claimed = false
}
