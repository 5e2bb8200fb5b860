// Package grants is where the controllers ask before they do what cannot be undone and no person asked for. It remembers what is due and what was granted, and
// package breaker decides. There is one Desk in a manager that leads, so that controllers that each see few acts due are answered by one that sees all.
package grants

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/utils/clock"

	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/serverclock"
)

// maxStored is how many grants are kept over a restart: more than are given within breaker.Window to fifty thousand servers.
const maxStored = 1000

// Desk answers all asks of a manager. It is safe for concurrent use.
type Desk struct {
	// Clock tells the time.
	Clock clock.PassiveClock

	mu sync.Mutex
	// asks are the acts that are due, by who asks and by act and object.
	asks map[string]map[string]entry
	// grants are those within breaker.Window.
	grants []breaker.Grant
	// domains is what who asked last said of each domain.
	domains map[breaker.Domain]breaker.Size
}

// entry is an ask, and whether it is granted.
type entry struct {
	breaker.Ask
	isGranted bool
}

// keyOf returns what tells an ask from others of the same actor.
func keyOf(a breaker.Ask) string { return string(a.Act) + " " + a.Object }

// Ask replaces all that the actor asks for, and returns the answers in the order of the asks. Since of an ask is not read: it is when the actor asked first
// and did not stop since. A grant holds until the actor stops asking.
func (d *Desk) Ask(actor string, asks []breaker.Ask, domains map[breaker.Domain]breaker.Size) []breaker.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(asks) == 0 {
		delete(d.asks, actor)
		return nil
	}
	if d.asks == nil {
		d.asks, d.domains = map[string]map[string]entry{}, map[breaker.Domain]breaker.Size{}
	}
	maps.Copy(d.domains, domains)
	now := serverclock.Of(d.Clock)
	before, mine := d.asks[actor], map[string]entry{}
	for _, a := range asks {
		a.Since = now.Now
		known, isKnown := before[keyOf(a)]
		if isKnown {
			a.Since = known.Since
		}
		mine[keyOf(a)] = entry{a, known.isGranted}
	}
	d.asks[actor] = mine
	d.grants = slices.DeleteFunc(d.grants, func(g breaker.Grant) bool { return now.Elapsed(g.At) >= breaker.Window })
	due := d.due()
	decided := map[string]breaker.Answer{}
	for i, answer := range breaker.Decide(breaker.Facts{Clock: now, Asks: due, Grants: d.grants, Domains: d.domains}) {
		decided[keyOf(due[i])] = answer
	}
	answers := make([]breaker.Answer, len(asks))
	for i, a := range asks {
		e := mine[keyOf(a)]
		if e.isGranted {
			answers[i] = breaker.Answer{IsGranted: true}
			continue
		}
		if answers[i] = decided[keyOf(a)]; answers[i].IsGranted {
			e.isGranted = true
			mine[keyOf(a)] = e
			d.grants = append(d.grants, breaker.Grant{Act: a.Act, Object: a.Object, Domains: a.Domains, At: now.Now})
		}
	}
	return answers
}

// due returns the asks of all actors that are not granted.
func (d *Desk) due() (out []breaker.Ask) {
	for _, asks := range d.asks {
		for _, e := range asks {
			if !e.isGranted {
				out = append(out, e.Ask)
			}
		}
	}
	return out
}

// Save returns what must be remembered over a restart.
func (d *Desk) Save() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.grants) == 0 {
		return "", nil
	}
	text, err := json.Marshal(d.grants[max(0, len(d.grants)-maxStored):])
	if err != nil {
		return "", fmt.Errorf("write down the grants of the last hour: %w", err)
	}
	return string(text), nil
}

// Restore takes over what the last manager has saved. What cannot be read is an error, and changes nothing.
func (d *Desk) Restore(text string) error {
	if text == "" {
		return nil
	}
	var stored []breaker.Grant
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return fmt.Errorf("read the grants of the last hour: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grants = append(stored, d.grants...)
	return nil
}
