package scaling

import (
	"cmp"
	"slices"
	"time"
)

// Machine is the part of a Machine that a Decision depends on.
type Machine struct {
	Name string
	// Ready is true when its condition Ready is True.
	Ready bool
	// UpToDate is true when it has its NodeType's target revision.
	UpToDate bool
	// Created is when the object was created.
	Created time.Time
	// Deleting is true when it is being deleted. It is then not counted.
	Deleting bool
}

// Decision says how many Machines to create or which ones to delete. At most one of the two is set.
type Decision struct {
	// Create is the number of Machines to create.
	Create int
	// Delete are the Machines to delete, in this order.
	Delete []Deletion
}

// Deletion is a Machine to delete.
type Deletion struct {
	Name string
	// Reason says why this Machine is deleted and not another one.
	Reason string
}

// Plan compares the Machines of a NodePool with its replicas.
func Plan(replicas int, machines []Machine) Decision {
	remaining := slices.DeleteFunc(slices.Clone(machines), func(m Machine) bool { return m.Deleting })
	surplus := len(remaining) - replicas
	if surplus <= 0 {
		return Decision{Create: -surplus}
	}
	slices.SortFunc(remaining, byDeletionOrder)
	var decision Decision
	for _, m := range remaining[:surplus] {
		decision.Delete = append(decision.Delete, Deletion{Name: m.Name, Reason: deletionReason(m)})
	}
	return decision
}

// byDeletionOrder orders Machines as the package comment says.
func byDeletionOrder(a, b Machine) int {
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

func deletionReason(m Machine) string {
	switch {
	case !m.Ready:
		return "it is not Ready"
	case !m.UpToDate:
		return "its revision is outdated"
	}
	return "it is the newest"
}
