// Package breaker grants acts that cannot be undone and that no person asked for: to faults that come alone, and to none of many at once.
//
// One server in a rack fails, and what it is to be done about it is done. Eighteen fail within an hour, and it is their switch: whoever drains, erases and
// installs them makes an outage of minutes a loss of hours, and most of them may be at work behind the switch. So each actor asks, one decider knows all that is
// due and was done, and without a grant nothing happens.
//
// # The arithmetic
//
// A server with eight GPUs fails about once in 264 days: 419 interruptions in 54 days on 2,048 servers (The Llama 3 Herd of Models, section 3.3.4). So in a rack
// of 18 there are 0.0028 faults an hour, and two that come alone within one hour once in 14 years of the rack; in one of 72 there are 0.0114, and two within
// one hour come about once a year, three once in 155 years. Limit is therefore one an hour for up to 63 servers, and one more for each further 64.
//
// A fault is granted after GatherTime, because faults of one cause are not seen at the same moment: a Node is missed after 40 to 50 seconds, and its Machine is
// looked at within a minute.
package breaker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

const (
	// Window is how long what was done counts.
	Window = time.Hour
	// GatherTime is how long an act waits for others like it.
	GatherTime = 2 * time.Minute
	// perFurther is for how many further servers of a domain one more act may be done within Window.
	perFurther = 64
)

// Limit returns how many acts of one kind may be done within Window in a domain with so many servers.
func Limit(servers int) int { return 1 + servers/perFurther }

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

// Ask is one act that is due.
type Ask struct {
	Act Act
	// Object is namespace/name of what it is done to.
	Object string
	// Domains are those that the object is in.
	Domains []Domain
	// Since is when it was first asked for.
	Since time.Time
	// IsConfirmed says that a person wants it done although many are due.
	IsConfirmed bool
}

// Grant is an act that was granted.
type Grant struct {
	Act     Act       `json:"act"`
	Object  string    `json:"object"`
	Domains []Domain  `json:"domains"`
	At      time.Time `json:"at"`
}

// Facts are everything that a Decision depends on.
type Facts struct {
	watched.Clock
	// Asks are all acts that are due and not granted.
	Asks []Ask
	// Grants are those of the last Window.
	Grants []Grant
	// Domains are what is known of the domains.
	Domains map[Domain]Size
}

// Size is what a domain has.
type Size struct {
	// Servers is how many servers it has.
	Servers int
	// Failing is how many of them served and do not now, whether or not anything is to be done about them yet.
	Failing int
}

// Cause is what many acts have in common.
type Cause struct {
	Act    Act
	Domain Domain
	// Due is how many are due, or fail alike. Done is how many were done within Window, and Limit how many may be.
	Due, Done, Limit int
	// Servers is how many the domain has.
	Servers int
}

// Message says what they have in common.
func (c Cause) Message() string {
	text := fmt.Sprintf("%d of the %d servers of %s", c.Due, c.Servers, c.Domain)
	if c.Due == 1 {
		text = fmt.Sprintf("1 server of %s", c.Domain)
	}
	if c.Done > 0 {
		text += fmt.Sprintf(", after %d within the hour before", c.Done)
	}
	return text
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

// tally is what is due and done of one act in one domain.
type tally struct{ due, done int }

// key is an act in a domain.
type key struct {
	act    Act
	domain Domain
}

// Decide answers all asks, in their order.
func Decide(f Facts) []Answer {
	counts := map[key]*tally{}
	of := func(act Act, d Domain) *tally {
		k := key{act, d}
		if counts[k] == nil {
			counts[k] = &tally{}
		}
		return counts[k]
	}
	for _, a := range f.Asks {
		for _, d := range a.Domains {
			of(a.Act, d).due++
		}
	}
	for _, g := range f.Grants {
		for _, d := range g.Domains {
			if f.isRecent(g) {
				of(g.Act, d).done++
			}
		}
	}
	answers := make([]Answer, len(f.Asks))
	for i, a := range f.Asks {
		answers[i] = f.answer(a, func(d Domain) tally { return *of(a.Act, d) })
	}
	return answers
}

// isRecent reports whether the grant counts.
func (f Facts) isRecent(g Grant) bool { return f.Elapsed(g.At) < Window }

// answer answers one Ask.
func (f Facts) answer(a Ask, count func(Domain) tally) Answer {
	if a.IsConfirmed {
		return Answer{IsGranted: true}
	}
	var causes []Cause
	for _, d := range a.Domains {
		n, size := count(d), f.Domains[d]
		due := max(n.due, size.Failing)
		servers := max(size.Servers, due)
		if c := (Cause{Act: a.Act, Domain: d, Due: due, Done: n.done, Limit: Limit(servers), Servers: servers}); c.Due+c.Done > c.Limit {
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
