// Package grants is where the controllers ask before they do what cannot be undone and no person asked for. It remembers what is due and what was granted, and
// package breaker decides. There is one Desk in a manager that leads, so that controllers that each see few acts due are answered by one that sees all.
package grants

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/serverclock"
)

// maxStored is how many bytes of grants are kept over a restart, the latest first: some four hundred. All annotations of an object have 256 KiB (Kubernetes,
// TotalAnnotationSizeLimitB).
const maxStored = 128 << 10

// Desk answers all asks of a manager. It is safe for concurrent use.
type Desk struct {
	// Clock tells the time.
	Clock clock.PassiveClock

	mu sync.Mutex
	// asks are the acts that are due, by who asks and by act and object.
	asks map[string]map[string]entry
	// grants are those within breaker.Window.
	grants []breaker.Grant
}

// entry is an ask, and whether it is granted.
type entry struct {
	breaker.Ask
	isGranted bool
}

// keyOf returns what tells an ask from others of the same actor.
func keyOf(a breaker.Ask) string { return string(a.Act) + " " + a.Object }

// Ask replaces all that the actor asks for, and returns the answers in the order of the asks. Since of an ask is not read: it is when the actor asked first
// and did not stop since. A grant holds until the actor stops asking, and for breaker.Window at least.
func (d *Desk) Ask(actor string, asks []breaker.Ask) []breaker.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(asks) == 0 {
		delete(d.asks, actor)
		return nil
	}
	now := serverclock.Of(d.Clock)
	mine := d.remember(actor, asks, now.Now)
	d.grants = breaker.Prune(d.grants, now)
	due := d.due()
	decided := make(map[string]breaker.Answer, len(due))
	for i, answer := range breaker.Decide(breaker.Facts{Clock: now, Asks: due, Grants: d.grants}) {
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
			d.record(breaker.NewGrant(a, now.Now))
		}
	}
	return answers
}

// remember stores what the actor asks for, each since it was first asked for.
func (d *Desk) remember(actor string, asks []breaker.Ask, now time.Time) map[string]entry {
	before, mine := d.asks[actor], make(map[string]entry, len(asks))
	for _, a := range asks {
		known, isKnown := before[keyOf(a)]
		if a.Since = now; isKnown {
			a.Since = known.Since
		}
		mine[keyOf(a)] = entry{a, known.isGranted}
	}
	if d.asks == nil {
		d.asks = map[string]map[string]entry{}
	}
	d.asks[actor] = mine
	return mine
}

// record adds a grant, unless the object has one of the same act: that one counts on, and no longer.
func (d *Desk) record(g breaker.Grant) {
	if !slices.ContainsFunc(d.grants, func(known breaker.Grant) bool { return known.Act == g.Act && known.Object == g.Object }) {
		d.grants = append(d.grants, g)
	}
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
	d.grants = breaker.Prune(d.grants, serverclock.Of(d.Clock))
	var kept []json.RawMessage
	size := len("[]")
	for _, g := range slices.Backward(d.grants) {
		text, err := json.Marshal(g)
		if err != nil {
			return "", fmt.Errorf("write down the grants of the last hour: %w", err)
		}
		if size += len(text) + len(","); size > maxStored {
			break
		}
		kept = append(kept, text)
	}
	if len(kept) == 0 {
		return "", nil
	}
	slices.Reverse(kept)
	text, err := json.Marshal(kept)
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
