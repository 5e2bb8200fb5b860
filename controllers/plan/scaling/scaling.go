package scaling

import (
	"cmp"
	"slices"
	"time"
)

// Machine is what counts of one Machine.
type Machine struct {
	// Name of the Machine.
	Name string
	// Ready as its condition says.
	Ready bool
	// UpToDate: it has its NodeType's target revision.
	UpToDate bool
	// Created at.
	Created time.Time
	// Deleting Machines are on their way out and count no more.
	Deleting bool
}

// Decision says what to do; at most one of the two.
type Decision struct {
	// Create so many Machines.
	Create int
	// Delete these Machines, in this order.
	Delete []Victim
}

// Victim is a Machine that goes.
type Victim struct {
	// Name of the Machine.
	Name string
	// Why it and not another, for people.
	Why string
}

// Plan compares the Machines with the number asked for.
func Plan(replicas int, machines []Machine) Decision {
	alive := slices.DeleteFunc(slices.Clone(machines), func(m Machine) bool { return m.Deleting })
	surplus := len(alive) - replicas
	if surplus <= 0 {
		return Decision{Create: -surplus}
	}
	slices.SortFunc(alive, leastWorth)
	var decision Decision
	for _, m := range alive[:surplus] {
		decision.Delete = append(decision.Delete, Victim{Name: m.Name, Why: why(m)})
	}
	return decision
}

func leastWorth(a, b Machine) int {
	return cmp.Or(
		compareBool(a.Ready, b.Ready),
		compareBool(a.UpToDate, b.UpToDate),
		b.Created.Compare(a.Created),
		cmp.Compare(a.Name, b.Name),
	)
}

// compareBool puts false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func why(m Machine) string {
	switch {
	case !m.Ready:
		return "it is not Ready"
	case !m.UpToDate:
		return "its revision is outdated"
	}
	return "it is the newest"
}
