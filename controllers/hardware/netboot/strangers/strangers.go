// Package strangers remembers the servers that asked the boot service for something and are nobody's, in bounded memory.
package strangers

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/api/input"
)

const (
	// Max is how many strangers are remembered. Of more, those that were seen last stay.
	Max = 256
	// MaxAge is how long a stranger that asks no more is remembered.
	MaxAge = 7 * 24 * time.Hour
	// maxText limits what is kept of a text from the network.
	maxText = 64
)

// What strangers ask for.
const (
	AskedDHCP         = "DHCP"
	AskedBootDocument = "boot document"
)

// Stranger is a server with a MAC address that is no host's.
type Stranger struct {
	MAC string `json:"mac"`
	// FirstSeen and LastSeen are when it asked.
	FirstSeen time.Time `json:"firstSeen"`
	LastSeen  time.Time `json:"lastSeen"`
	// Asked is what it asked for, sorted.
	Asked []string `json:"asked"`
	// Vendor and Architecture are what it says of itself: anybody on the network can say it.
	Vendor       string `json:"vendor,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	// From is the relay agent or the address that it asked from; Interface where it was heard.
	From      string `json:"from,omitempty"`
	Interface string `json:"interface,omitempty"`
}

// Sighting is one request of a stranger. Its texts may be what somebody on the network wrote.
type Sighting struct {
	MAC, Asked, Vendor, Architecture, From, Interface string
}

// List is the strangers of one process. It is safe for concurrent use; the zero value is ready.
type List struct {
	mu    sync.Mutex
	byMAC map[string]Stranger
	// isChanged is whether something was noted since the last call of Changed.
	isChanged bool
}

// Note adds a sighting.
func (l *List) Note(s Sighting, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byMAC == nil {
		l.byMAC = map[string]Stranger{}
	}
	now = now.UTC().Truncate(time.Second)
	seen := Stranger{
		MAC: s.MAC, FirstSeen: now, LastSeen: now, Asked: []string{s.Asked}, Vendor: input.Line(s.Vendor, maxText), Architecture: input.Line(s.Architecture, maxText), From: input.Line(s.From, maxText), Interface: input.Line(s.Interface, maxText),
	}
	before, isKnown := l.byMAC[s.MAC]
	if isKnown {
		seen = merge(before, seen)
	}
	if !isKnown && len(l.byMAC) >= Max {
		delete(l.byMAC, l.oldest())
	}
	l.byMAC[s.MAC] = seen
	l.isChanged = true
}

// oldest returns the one that was seen before all others.
func (l *List) oldest() string {
	var oldest Stranger
	for _, s := range l.byMAC {
		if oldest.MAC == "" || s.LastSeen.Before(oldest.LastSeen) {
			oldest = s
		}
	}
	return oldest.MAC
}

// Changed returns all strangers if one was noted since it was called last.
func (l *List) Changed() ([]Stranger, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isChanged {
		return nil, false
	}
	l.isChanged = false
	out := make([]Stranger, 0, len(l.byMAC))
	for _, s := range l.byMAC {
		out = append(out, s)
	}
	return out, true
}

// SetChanged has the next call of Changed return all strangers, because they could not be stored.
func (l *List) SetChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isChanged = true
}

// Merge returns the strangers of both lists that were seen last, the latest first, without those that have a host now.
func Merge(a, b []Stranger, isKnown func(mac string) bool, now time.Time) []Stranger {
	byMAC := map[string]Stranger{}
	for _, s := range slices.Concat(a, b) {
		if before, found := byMAC[s.MAC]; found {
			s = merge(before, s)
		}
		byMAC[s.MAC] = s
	}
	out := make([]Stranger, 0, len(byMAC))
	for _, s := range byMAC {
		if now.Sub(s.LastSeen) < MaxAge && !isKnown(s.MAC) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Stranger) int { return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.MAC, b.MAC)) })
	return out[:min(len(out), Max)]
}

// merge returns what is known of one stranger. What the later sighting does not say stays as the earlier one said it: the request for a boot document does not
// name the architecture.
func merge(a, b Stranger) Stranger {
	if b.LastSeen.Before(a.LastSeen) {
		a, b = b, a
	}
	asked := slices.Concat(a.Asked, b.Asked)
	slices.Sort(asked)
	if a.FirstSeen.Before(b.FirstSeen) {
		b.FirstSeen = a.FirstSeen
	}
	b.Asked, b.Vendor, b.Architecture = slices.Compact(asked), cmp.Or(b.Vendor, a.Vendor), cmp.Or(b.Architecture, a.Architecture)
	b.From, b.Interface = cmp.Or(b.From, a.From), cmp.Or(b.Interface, a.Interface)
	return b
}
