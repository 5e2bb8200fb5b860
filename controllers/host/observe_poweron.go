package host

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// powerOnInterval is the time between two servers that are powered on after a loss of power: a thousand take four minutes, which is as long as one boots.
	powerOnInterval = 250 * time.Millisecond
	// powerOnBurst is how many are powered on at once where none was before.
	powerOnBurst = 4
)

// powerOns gives turns to hosts that lost their power.
type powerOns struct {
	mu sync.Mutex
	// next is when the next one is due that asks.
	next time.Time
	// turns are those of the hosts that wait or are being powered on.
	turns map[types.NamespacedName]time.Time
}

// wait returns how long until it is the host's turn; 0: it is.
func (p *powerOns) wait(host types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn, isKnown := p.turns[host]
	if !isKnown {
		turn = p.next
		if earliest := now.Add(-powerOnBurst * powerOnInterval); turn.Before(earliest) {
			turn = earliest
		}
		turn = turn.Add(powerOnInterval)
		if p.next = turn; p.turns == nil {
			p.turns = map[types.NamespacedName]time.Time{}
		}
		p.turns[host] = turn
	}
	return max(turn.Sub(now), 0)
}

// leave gives up the turn of a host that is on, or is not to be powered on any more.
func (p *powerOns) leave(host types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, host)
}
