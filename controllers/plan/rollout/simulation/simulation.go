package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// Behavior is what a Machine does when it is moved to a revision.
type Behavior struct {
	// Drain is how long its pods take to leave. Install is how long it then takes until it is Ready or has failed.
	Drain, Install time.Duration
	// FailureReason is the reason with which it then fails; empty: it becomes Ready. WaitingFor is its status.waitingFor.
	FailureReason, WaitingFor string
	// RecoversAfter is how long after the failure it becomes Ready without help; 0: never.
	RecoversAfter time.Duration
}

// Config is what a simulation begins with.
type Config struct {
	// Start is the virtual time at which it begins.
	Start time.Time
	// Stable is the revision that every Machine has.
	Stable string
	// Policy is the rollout policy of the NodeType. Pools are its NodePools.
	Policy rollout.Policy
	Pools  map[types.NamespacedName]rollout.Pool
	// MaxUnavailable are the budgets of tenants' classes of devices, by DeviceClass.
	MaxUnavailable map[string]int
	// Behavior returns what the Machine does when it is moved to the revision.
	Behavior func(machine types.NamespacedName, revision string) Behavior
}

// Line is one thing that happened.
type Line struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Simulation is a rollout with simulated Machines in virtual time.
type Simulation struct {
	config Config
	now    time.Time
	// target is the revision that the NodeType asks for.
	target   string
	machines []*machine
	rollouts []*rolloutObject
	actions  []action
	lines    []Line
	// maxUnavailable is the largest number of Machines that were unavailable at once.
	maxUnavailable int
	// mustKillManager is true if the manager is killed before its next start of a Machine.
	mustKillManager bool
	// hasChanged is true if a reconcile has changed something, so that the Rollouts are reconciled again.
	hasChanged bool
}

// action is what a person does, or what happens to a Machine, at a given time.
type action struct {
	at time.Time
	do func()
}

type rolloutObject struct {
	rollout.Rollout
	// requeueAt is when the planner asked to be called again; zero: when something changes.
	requeueAt time.Time
}

// New returns a simulation that has not run.
func New(config Config) *Simulation {
	return &Simulation{config: config, now: config.Start, target: config.Stable}
}

// Schedule runs the function when that much virtual time has passed.
func (s *Simulation) Schedule(after time.Duration, do func()) {
	s.actions = append(s.actions, action{s.config.Start.Add(after), do})
}

// log adds a line.
func (s *Simulation) log(format string, args ...any) {
	s.lines = append(s.lines, Line{s.now, fmt.Sprintf(format, args...)})
}

// rendered returns the revision with an empty rendering name: in a simulation each revision has one rendering.
func rendered(revision string) v1alpha1.RenderedRevision {
	return v1alpha1.RenderedRevision{Revision: revision}
}

// SetTarget sets the revision that the NodeType asks for, which makes a new Rollout and supersedes the earlier ones.
func (s *Simulation) SetTarget(revision string) {
	if revision == s.target {
		return
	}
	before, from := s.target, s.config.Stable
	if revision == from {
		from = before
	}
	s.target = revision
	for _, r := range s.rollouts {
		r.Superseded = true
	}
	name := fmt.Sprintf("%s-%d", revision, len(s.rollouts)+1)
	s.rollouts = append(s.rollouts, &rolloutObject{Rollout: rollout.Rollout{Name: name, From: rendered(from), To: rendered(revision)}})
	s.log("the NodeType asks for %s instead of %s: Rollout %s", revision, before, name)
}

// SetPaused sets spec.paused of the newest Rollout.
func (s *Simulation) SetPaused(paused bool) {
	s.rollouts[len(s.rollouts)-1].Paused = paused
	s.log("somebody sets spec.paused to %t", paused)
}

// KillManager kills the manager just before it sends its next request to start a Machine. A new manager takes over.
func (s *Simulation) KillManager() { s.mustKillManager = true }

// ErrTimeLimit is returned by Run if the simulation has not ended within the limit.
var ErrTimeLimit = errors.New("the simulation has not ended within its limit")

// Run simulates until nothing more happens, or until the next thing would happen after the limit; then the error is ErrTimeLimit.
func (s *Simulation) Run(limit time.Duration) error {
	slices.SortStableFunc(s.actions, func(a, b action) int { return a.at.Compare(b.at) })
	for {
		s.reconcileAll()
		next, found := s.nextTime()
		if !found {
			return nil
		}
		if next.Sub(s.config.Start) > limit {
			return ErrTimeLimit
		}
		s.now = next
		for len(s.actions) > 0 && !s.actions[0].at.After(s.now) {
			s.actions[0].do()
			s.actions = s.actions[1:]
		}
		for _, m := range s.machines {
			s.advance(m)
		}
		s.machines = slices.DeleteFunc(s.machines, func(m *machine) bool { return m.isGone })
	}
}

// nextTime returns when the next thing happens; false: nothing more does.
func (s *Simulation) nextTime() (at time.Time, found bool) {
	consider := func(t time.Time) {
		if !t.IsZero() && (!found || t.Before(at)) {
			at, found = t, true
		}
	}
	if len(s.actions) > 0 {
		consider(s.actions[0].at)
	}
	for _, m := range s.machines {
		consider(m.due)
	}
	for _, r := range s.rollouts {
		consider(r.requeueAt)
	}
	return at, found
}

// reconcileAll calls the planner for every Rollout until nothing changes any more.
func (s *Simulation) reconcileAll() {
	for s.hasChanged = true; s.hasChanged; {
		s.hasChanged = false
		for i := range s.rollouts {
			s.reconcile(i)
		}
	}
}

// reconcile calls the planner for one Rollout and carries out its decision.
func (s *Simulation) reconcile(i int) {
	r := s.rollouts[i]
	if r.requeueAt = (time.Time{}); r.Status.Phase.IsFinal() {
		return
	}
	d := rollout.Plan(s.facts(i))
	added := newEntries(r.Status.History, d.Status.History)
	if r.Status.Phase != d.Status.Phase || !slices.EqualFunc(lists(r.Status), lists(d.Status), slices.Equal) || !slices.Equal(r.Status.InUse, d.Status.InUse) || len(added) > 0 {
		s.hasChanged = true
	}
	for _, e := range added {
		s.log("%s", e.Message)
	}
	r.Status = d.Status
	s.updateStable()
	if d.RequeueAfter > 0 {
		r.requeueAt = s.now.Add(d.RequeueAfter)
	}
	for _, key := range d.Label {
		s.findMachine(key).label, s.hasChanged = r.Name, true
	}
	for _, key := range d.Start {
		s.hasChanged = true
		if s.mustKillManager {
			s.mustKillManager = false
			s.log("the manager is killed before it has started %s; a new one reads the Rollout and goes on", key)
			break
		}
		s.start(r, s.findMachine(key))
	}
	s.maxUnavailable = max(s.maxUnavailable, s.countUnavailable())
}

// updateStable asks the planner of the revisions which one is stable now.
func (s *Simulation) updateStable() {
	f := revisionrollout.Facts{Stable: rendered(s.config.Stable), Target: rendered(s.target), Desired: rendered(s.target)}
	for _, r := range s.rollouts {
		f.Rollouts = append(f.Rollouts, revisionrollout.Rollout{Name: r.Name, From: r.From, To: r.To, Phase: r.Status.Phase})
	}
	for _, m := range s.machines {
		f.Machines = append(f.Machines, revisionrollout.Machine{Desired: m.Desired, Installed: m.Installed, Deleting: m.Deleting})
	}
	if stable := revisionrollout.Plan(f).Stable.Revision; stable != s.config.Stable {
		s.config.Stable, s.hasChanged = stable, true
	}
}

// lists returns the lists of Machines that the next decision depends on.
func lists(s v1alpha1.RolloutStatus) [][]string {
	return [][]string{s.InProgress, s.Canary, s.BrokenBefore}
}

// newEntries returns the entries that the later history has after the end of the earlier one, whose first entries may be cut off.
func newEntries(before, after []v1alpha1.RolloutEntry) []v1alpha1.RolloutEntry {
	for kept := min(len(before), len(after)); kept > 0; kept-- {
		if slices.Equal(before[len(before)-kept:], after[:kept]) {
			return after[kept:]
		}
	}
	return after
}

func (s *Simulation) facts(i int) rollout.Facts {
	r := s.rollouts[i]
	f := rollout.Facts{Clock: watched.Clock{Now: s.now}, Rollout: r.Rollout, Policy: s.config.Policy, Pools: s.config.Pools, Machines: make([]rollout.Machine, 0, len(s.machines))}
	f.Rollout.ToStable = r.To.Revision == s.config.Stable
	if i > 0 {
		b := s.rollouts[i-1]
		f.Previous = rollout.NewPreviousRollout(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: b.Name}, Status: b.Status})
	}
	for _, m := range s.machines {
		observed := m.Machine
		observed.Labeled = m.label == r.Name
		observed.Cluster, observed.Node = sharedCluster, "node-"+m.Name
		f.Machines = append(f.Machines, observed)
	}
	f.Tenants = s.tenants()
	return f
}

// Lines returns what has happened so far.
func (s *Simulation) Lines() []Line { return s.lines }

// Outcome is how a simulation ended.
type Outcome struct {
	// Phase of the newest Rollout, and why it stopped.
	Phase     v1alpha1.RolloutPhase `json:"phase"`
	StoppedBy string                `json:"stoppedBy,omitempty"`
	// Targets counts the Machines that it was to move, that have moved and that have failed.
	Targets v1alpha1.RolloutTargets `json:"targets"`
	// Elapsed is the time from the start until the last thing happened.
	Elapsed time.Duration `json:"-"`
	// MaxUnavailable is the largest number of Machines that were unavailable at once.
	MaxUnavailable int `json:"mostUnavailable"`
}

// Outcome returns the outcome of what has happened so far.
func (s *Simulation) Outcome() Outcome {
	out := Outcome{MaxUnavailable: s.maxUnavailable}
	if n := len(s.rollouts); n > 0 {
		status := s.rollouts[n-1].Status
		out.Phase, out.StoppedBy, out.Targets = status.Phase, status.StoppedBy, status.Targets
	}
	if n := len(s.lines); n > 0 {
		out.Elapsed = s.lines[n-1].At.Sub(s.config.Start)
	}
	return out
}

// Message returns the message of the newest Rollout's condition Ready.
func (s *Simulation) Message() string {
	ready := meta.FindStatusCondition(s.rollouts[len(s.rollouts)-1].Status.Conditions, v1alpha1.ConditionReady)
	return ready.Message
}

// ShowMessage adds a line with the message of the newest Rollout's condition Ready.
func (s *Simulation) ShowMessage() { s.log("the Rollout says: %s", s.Message()) }

func (s *Simulation) findMachine(key types.NamespacedName) *machine {
	i := slices.IndexFunc(s.machines, func(m *machine) bool {
		return cmp.Or(cmp.Compare(m.Name, key.Name), cmp.Compare(m.Namespace, key.Namespace)) == 0
	})
	return s.machines[i]
}

// FormatLines prints a line for each thing that happened, with the time of day. Days after the first are numbered.
func FormatLines(begin time.Time, lines []Line) string {
	var b strings.Builder
	day := 0
	for _, l := range lines {
		if d := int(l.At.Sub(begin.Truncate(24*time.Hour)) / (24 * time.Hour)); d != day {
			day = d
			fmt.Fprintf(&b, "day %d\n", day+1)
		}
		fmt.Fprintf(&b, "%s %s\n", l.At.Format("15:04"), l.Text)
	}
	return b.String()
}

// FormatDuration prints a duration in days, hours and minutes: 10m, 1h30m, 2d4h.
func FormatDuration(d time.Duration) string {
	d = d.Round(time.Minute)
	days, hours, minutes := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60
	var b strings.Builder
	for _, part := range []struct {
		n    int
		unit string
	}{{days, "d"}, {hours, "h"}, {minutes, "m"}} {
		if part.n > 0 {
			fmt.Fprint(&b, part.n, part.unit)
		}
	}
	if b.Len() == 0 {
		return "0m"
	}
	return b.String()
}
