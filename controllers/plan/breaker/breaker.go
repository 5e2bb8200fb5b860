// Package breaker grants acts that cannot be undone and that no person asked for: to faults that come alone, and to none of many at once.
//
// One server in a rack fails, and what it is to be done about it is done. Eighteen fail within an hour, and it is their switch: whoever drains, erases and
// installs them makes an outage of minutes a loss of hours, and most of them may be at work behind the switch. So each actor asks, one decider knows all that is
// due and was done, and without a grant nothing happens.
//
// # The arithmetic
//
// A server with eight GPUs fails about once in 264 days: 419 interruptions in 54 days on 2,048 servers (The Llama 3 Herd of Models, section 3.3.4). Faults that
// come alone have a Poisson distribution, so with n servers k or more of them come within one hour with a known probability. Limit is the most that come alone
// in all hours but one a year: 1 of up to 96 servers, 2 of up to 571, 3 of 1,000, 8 of 10,000. What is more than that has one cause.
//
// A fault is granted after GatherTime, because faults of one cause are not seen at the same moment: a Node is missed after 40 to 50 seconds, and its Machine is
// looked at within a minute.
package breaker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

const (
	// Window is how long what was done counts, and how far apart faults of one cause may be.
	Window = time.Hour
	// GatherTime is how long an act waits for others like it.
	GatherTime = 2 * time.Minute
	// faultsAnHour is how many faults one server has in an hour.
	faultsAnHour = 1.0 / (264 * 24)
	// oncePerYear is the probability of what comes in one hour of a year.
	oncePerYear = 1.0 / (365 * 24)
	// maxServers bounds the arithmetic: more are counted as so many.
	maxServers = 1_000_000
)

// Limit returns how many faults come alone within Window in a domain with so many servers; at least 1.
func Limit(servers int) int {
	mean := faultsAnHour * float64(min(servers, maxServers))
	// term is the probability of exactly n faults, and left that of more than n.
	term := math.Exp(-mean)
	left := 1 - term
	n := 0
	for left > oncePerYear {
		n++
		term *= mean / float64(n)
		left -= term
	}
	return max(n, 1)
}

// Act is what is done.
type Act string

// The acts.
const (
	// Reinstall drains a Machine that has served and installs it again.
	Reinstall Act = "Reinstall"
	// Erase erases a server of which nobody knows what is on its disks.
	Erase Act = "Erase"
)

// Domain is what may fail as a whole: a rack, an NVLink domain, a TenantCluster, a NodeProvider, a NodeType.
type Domain struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// String returns the domain for people.
func (d Domain) String() string { return d.Kind + " " + d.Name }

// Group is what is known of the servers of a Domain.
type Group struct {
	Domain
	// Servers is how many it has.
	Servers int
	// Failing are those of them that served and do not now, whether or not anything is to be done about them yet.
	Failing []Fault
}

// Fault is a server that does not serve.
type Fault struct {
	// Object is namespace/name of what runs on it.
	Object string
	// At is since when; zero: that is not known, so it may be since the same time as any other.
	At time.Time
}

// Ask is one act that is due.
type Ask struct {
	Act Act
	// Fault is what it is due for, and Object of it what it is done to.
	Fault
	// Groups are those that the object is in.
	Groups []*Group
	// Since is when it was first asked for.
	Since time.Time
	// IsConfirmed says that a person wants it done although many are due.
	IsConfirmed bool
}

// Confirm has the acts done that are due in the domain, although many are.
func Confirm(asks []Ask, domain Domain) {
	for i := range asks {
		if slices.ContainsFunc(asks[i].Groups, func(g *Group) bool { return g.Domain == domain }) {
			asks[i].IsConfirmed = true
		}
	}
}

// Grant is an act that was granted.
type Grant struct {
	Act     Act       `json:"act"`
	Object  string    `json:"object"`
	Domains []Domain  `json:"domains"`
	At      time.Time `json:"at"`
}

// NewGrant returns the grant of an ask.
func NewGrant(a Ask, at time.Time) Grant {
	g := Grant{Act: a.Act, Object: a.Object, At: at}
	for _, group := range a.Groups {
		g.Domains = append(g.Domains, group.Domain)
	}
	return g
}

// Prune returns the grants that count.
func Prune(grants []Grant, clock watched.Clock) []Grant {
	return slices.DeleteFunc(grants, func(g Grant) bool { return clock.Elapsed(g.At) >= Window })
}

// Facts are everything that a Decision depends on.
type Facts struct {
	watched.Clock
	// Asks are all acts that are due and not granted.
	Asks []Ask
	// Grants are those of the last Window.
	Grants []Grant
}

// Cause is what many acts have in common.
type Cause struct {
	Act    Act
	Domain Domain
	// Due is how many are due, or fail alike, since about the same time. Done is how many were done within Window, and Limit how many come alone.
	Due, Done, Limit int
	// Servers is how many the domain has.
	Servers int
	// Until is when so much of Done is over that what is due is granted; zero: Due alone is more than Limit.
	Until time.Time
}

// Subject says of which servers it is.
func (c Cause) Subject() string {
	if c.Due == 1 {
		return "1 server of " + c.Domain.String()
	}
	return fmt.Sprintf("%d of the %d servers of %s", c.Due, c.Servers, c.Domain)
}

// Answer is the answer to an Ask.
type Answer struct {
	// IsGranted says that it may be done now.
	IsGranted bool
	// Cause is set where it may not, because many are due.
	Cause *Cause
	// Wait is when to ask again.
	Wait time.Duration
}

// recheck is when a held act is asked for again.
const recheck = 30 * time.Second

// Decide answers all asks, in their order.
func Decide(f Facts) []Answer {
	all := newTallies(f)
	answers := make([]Answer, len(f.Asks))
	for i, a := range f.Asks {
		if answers[i] = f.answer(a, all); answers[i].IsGranted {
			all.grant(a, f.Now)
		}
	}
	return answers
}

// answer answers one Ask.
func (f Facts) answer(a Ask, all tallies) Answer {
	if a.IsConfirmed || all.hasGrant(a) {
		return Answer{IsGranted: true}
	}
	var causes []Cause
	for _, g := range a.Groups {
		if c := all[key{a.Act, g.Domain}].cause(a); c.Due+c.Done > c.Limit {
			causes = append(causes, c)
		}
	}
	if len(causes) > 0 {
		// The one of which the largest part is concerned is what they have in common; of two, the smaller.
		cause := slices.MinFunc(causes, func(x, y Cause) int {
			return cmp.Or(cmp.Compare((y.Due+y.Done)*x.Servers, (x.Due+x.Done)*y.Servers), cmp.Compare(x.Servers, y.Servers), cmp.Compare(x.Domain.String(), y.Domain.String()))
		})
		return Answer{Cause: &cause, Wait: recheck}
	}
	if left := f.Left(a.Since, GatherTime); left > 0 {
		return Answer{Wait: left}
	}
	return Answer{IsGranted: true}
}
