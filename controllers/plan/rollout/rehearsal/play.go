package rehearsal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rollout"
)

// Course is how one roll of one Machine goes.
type Course struct {
	// Drain is how long its pods take to leave, Install how long it then takes until it is Ready, or has failed.
	Drain, Install time.Duration
	// Failed is the reason that it fails with after that time; empty: it becomes Ready. WaitingFor says more.
	Failed, WaitingFor string
	// Mends is how long after the failure it becomes Ready by itself; 0: it does not.
	Mends time.Duration
}

// Setting is what a play begins with.
type Setting struct {
	// Now is when it begins.
	Now time.Time
	// Stable is the revision that every Machine has.
	Stable string
	// Policy of the NodeType, and its NodePools.
	Policy rollout.Policy
	Pools  map[types.NamespacedName]rollout.Pool
	// Course of a Machine that is rolled to a revision.
	Course func(machine types.NamespacedName, revision string) Course
}

// Line is what happened.
type Line struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Play is a rollout being rehearsed.
type Play struct {
	set Setting
	now time.Time
	// target is what the NodeType asks for.
	target   string
	machines []*machine
	rollouts []*record
	acts     []act
	lines    []Line
	peak     int
	// killed: the manager is killed before its next start of a Machine.
	killed bool
}

type act struct {
	at time.Time
	do func()
}

type record struct {
	rollout.Rollout
	// look is when the planner wants to look again; zero: when something changes.
	look time.Time
}

// New begins a play.
func New(set Setting) *Play {
	return &Play{set: set, now: set.Now, target: set.Stable}
}

// At plans what a person or the world does after that time.
func (p *Play) At(after time.Duration, do func()) {
	p.acts = append(p.acts, act{p.set.Now.Add(after), do})
}

// Say adds a line.
func (p *Play) Say(format string, args ...any) {
	p.lines = append(p.lines, Line{p.now, fmt.Sprintf(format, args...)})
}

// rendered is a revision as a rehearsal has it: each has one rendering, which needs no name.
func rendered(revision string) v1alpha1.RenderedRevision {
	return v1alpha1.RenderedRevision{Revision: revision}
}

// Want sets the NodeType to a revision: a new Rollout is made, and the ones before it are superseded.
func (p *Play) Want(revision string) {
	if revision == p.target {
		return
	}
	from := p.target
	p.target = revision
	for _, r := range p.rollouts {
		r.Superseded = true
	}
	name := fmt.Sprintf("%s-%d", revision, len(p.rollouts)+1)
	p.rollouts = append(p.rollouts, &record{Rollout: rollout.Rollout{Name: name, From: rendered(from), To: rendered(revision), ToStable: revision == p.set.Stable}})
	p.Say("the NodeType asks for %s instead of %s: Rollout %s", revision, from, name)
}

// Pause sets spec.paused of the newest Rollout.
func (p *Play) Pause(paused bool) {
	p.rollouts[len(p.rollouts)-1].Paused = paused
	p.Say("somebody sets spec.paused to %t", paused)
}

// KillManager ends the manager just before it sends its next request to start a Machine; a new one goes on.
func (p *Play) KillManager() { p.killed = true }

// Run plays until nothing more happens by itself, or the limit has passed; it tells whether it came to its end.
func (p *Play) Run(limit time.Duration) bool {
	slices.SortStableFunc(p.acts, func(a, b act) int { return a.at.Compare(b.at) })
	for {
		p.settle()
		next, found := p.next()
		if !found {
			return true
		}
		if next.Sub(p.set.Now) > limit {
			return false
		}
		p.now = next
		for len(p.acts) > 0 && !p.acts[0].at.After(p.now) {
			p.acts[0].do()
			p.acts = p.acts[1:]
		}
		for _, m := range p.machines {
			p.live(m)
		}
		p.machines = slices.DeleteFunc(p.machines, func(m *machine) bool { return m.gone })
	}
}

// next is when something is due.
func (p *Play) next() (at time.Time, found bool) {
	consider := func(t time.Time) {
		if !t.IsZero() && (!found || t.Before(at)) {
			at, found = t, true
		}
	}
	if len(p.acts) > 0 {
		consider(p.acts[0].at)
	}
	for _, m := range p.machines {
		consider(m.due)
	}
	for _, r := range p.rollouts {
		consider(r.look)
	}
	return at, found
}

// settle lets the planner work until it has nothing more to do now.
func (p *Play) settle() {
	for again := true; again; {
		again = false
		for i := range p.rollouts {
			again = p.reconcile(i) || again
		}
	}
}

// reconcile plans one Rollout once; it tells whether that changed anything.
func (p *Play) reconcile(i int) bool {
	r := p.rollouts[i]
	if r.look = (time.Time{}); r.Status.Phase.Settled() {
		return false
	}
	d := rollout.Plan(p.facts(i))
	told := fresh(r.Status.History, d.Status.History)
	changed := r.Status.Phase != d.Status.Phase || !slices.Equal(r.Status.InProgress, d.Status.InProgress) || len(told) > 0
	for _, e := range told {
		p.Say("%s", e.Message)
	}
	r.Status = d.Status
	if d.Status.Phase == v1alpha1.RolloutDone {
		p.set.Stable = r.To.Revision
	}
	if d.RequeueAfter > 0 {
		r.look = p.now.Add(d.RequeueAfter)
	}
	for _, key := range d.Mark {
		p.find(key).label, changed = r.Name, true
	}
	for _, key := range d.Start {
		changed = true
		if p.killed {
			p.killed = false
			p.Say("the manager is killed before it has started %s; a new one reads the Rollout and goes on", key)
			break
		}
		p.start(r, p.find(key))
	}
	p.peak = max(p.peak, p.unavailable())
	return changed
}

// fresh are the entries of a history that was told so far only up to the end of the other one.
func fresh(before, after []v1alpha1.RolloutEntry) []v1alpha1.RolloutEntry {
	for kept := min(len(before), len(after)); kept > 0; kept-- {
		if slices.Equal(before[len(before)-kept:], after[:kept]) {
			return after[kept:]
		}
	}
	return after
}

func (p *Play) facts(i int) rollout.Facts {
	r := p.rollouts[i]
	f := rollout.Facts{Now: p.now, Rollout: r.Rollout, Policy: p.set.Policy, Pools: p.set.Pools, Machines: make([]rollout.Machine, 0, len(p.machines))}
	if i > 0 {
		b := p.rollouts[i-1]
		f.Previous = &rollout.PreviousRollout{Name: b.Name, Settled: b.Status.Phase.Settled(), InProgress: b.Status.InProgress}
	}
	for _, m := range p.machines {
		seen := m.Machine
		seen.Marked = m.label == r.Name
		f.Machines = append(f.Machines, seen)
	}
	return f
}

// Lines are what has happened so far.
func (p *Play) Lines() []Line { return p.lines }

// Outcome is how a play ended.
type Outcome struct {
	// Phase of the newest Rollout, and why it stopped.
	Phase     v1alpha1.RolloutPhase `json:"phase"`
	StoppedBy string                `json:"stoppedBy,omitempty"`
	// Machines that it was to move, and how many have moved or failed.
	Targets v1alpha1.RolloutTargets `json:"targets"`
	// Took is the time from the beginning until nothing more happened.
	Took time.Duration `json:"-"`
	// MostUnavailable is how many Machines were unavailable at once.
	MostUnavailable int `json:"mostUnavailable"`
}

// Outcome of the play so far.
func (p *Play) Outcome() Outcome {
	out := Outcome{MostUnavailable: p.peak}
	if n := len(p.rollouts); n > 0 {
		s := p.rollouts[n-1].Status
		out.Phase, out.StoppedBy, out.Targets = s.Phase, s.StoppedBy, s.Targets
	}
	if n := len(p.lines); n > 0 {
		out.Took = p.lines[n-1].At.Sub(p.set.Now)
	}
	return out
}

func (p *Play) find(key types.NamespacedName) *machine {
	i := slices.IndexFunc(p.machines, func(m *machine) bool {
		return cmp.Or(cmp.Compare(m.Name, key.Name), cmp.Compare(m.Namespace, key.Namespace)) == 0
	})
	return p.machines[i]
}
