// Package queue decides whose turn it is at an installer that may work on a limited number of hosts.
//
// The queue is not stored: it follows from what is stored of each host, so that a process that starts again finds every place as it was. It is fair between
// owners, which are tenants: the owner with the fewest hosts at work comes first, of those the one that was served longest ago, and of one owner's hosts the
// one that has waited longest. Without it: one tenant asks for two hundred nodes, and another tenant's only node waits for all of them.
package queue

import (
	"cmp"
	"slices"
	"time"
)

// Entry is one host at an installer, for one kind of work.
type Entry struct {
	// Host identifies the host, and decides between hosts that are otherwise equal.
	Host string
	// Owner is whose host it is, or was.
	Owner string
	// State says whether the installer works on the host.
	State State
	// Since is when the work began or begins, or since when the host waits for it.
	Since time.Time
}

// State is the state of an Entry.
type State string

// States.
const (
	// Waiting means that the host waits for its turn.
	Waiting State = "Waiting"
	// AtWork means that the installer may work on the host.
	AtWork State = "AtWork"
	// Served means that the work has ended. It tells when its owner was last served.
	Served State = "Served"
)

// Place returns the place of a host that waits: 0 when it is its turn, else one more than the number of hosts that come before it. There is room for so many
// hosts at work as the limit says. A host that is at work has the place 0.
func Place(entries []Entry, host string, limit int) int {
	atWork := 0
	for _, e := range entries {
		if e.State != AtWork {
			continue
		}
		if atWork++; e.Host == host {
			return 0
		}
	}
	index := slices.Index(order(entries), host)
	if index < limit-atWork {
		return 0
	}
	return index - max(limit-atWork, 0) + 1
}

// waiting is a host that waits.
type waiting struct {
	Entry
	// load is how many hosts of its owner are at work or come before it.
	load int
	// served is when its owner was last served.
	served time.Time
}

// order returns the hosts that wait, the next one first.
func order(entries []Entry) []string {
	load, served := map[string]int{}, map[string]time.Time{}
	var all []waiting
	for _, e := range entries {
		switch {
		case e.State == Waiting:
			all = append(all, waiting{Entry: e})
			continue
		case e.State == AtWork:
			load[e.Owner]++
		}
		if e.Since.After(served[e.Owner]) {
			served[e.Owner] = e.Since
		}
	}
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Host, b.Host)) })
	for i := range all {
		owner := all[i].Owner
		all[i].load, all[i].served = load[owner], served[owner]
		load[owner]++
	}
	slices.SortStableFunc(all, func(a, b waiting) int { return cmp.Or(cmp.Compare(a.load, b.load), a.served.Compare(b.served)) })
	hosts := make([]string, len(all))
	for i, w := range all {
		hosts[i] = w.Host
	}
	return hosts
}
