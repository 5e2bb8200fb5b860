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
	// HasHost is true when its status names a host. IsWaiting is true when its controller has found no host for it. Where both are false, it may have
	// one: it is claiming one, or nothing is known of it.
	HasHost, IsWaiting bool
	// IsUnknown is true when its controller has written no status yet, so that nothing is known of its host and of what runs there.
	IsUnknown bool
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

// Plan compares the Machines of a NodePool with its replicas and with how many hosts are free for them.
//
// Of the Machines that no host is there for, one is kept: it takes the next host that comes, and its conditions say why there is none. Without it:
// a pool of 100 with hosts for 2 has 98 Machines that wait, and whoever reads the list of Machines finds nothing else in it.
//
// Only a Machine whose controller has found no host for it is deleted for this. Without it: the management cluster is restored from a backup, which drops
// status. 100 Machines that run name no host, and all hosts are claimed, so none is free. The pool deletes 99 of them before their controllers have
// found their hosts, and 99 nodes are drained and erased.
func Plan(replicas, free int, machines []Machine) Decision {
	remaining := slices.DeleteFunc(slices.Clone(machines), func(m Machine) bool { return m.Deleting })
	slices.SortFunc(remaining, byDeletionOrder)
	if surplus := len(remaining) - replicas; surplus > 0 {
		return Decision{Delete: deletions(firstChosen(remaining, surplus), deletionReason)}
	}
	waiting, allowed := 0, max(free, 1)
	var idle []Machine
	for _, m := range remaining {
		if m.HasHost {
			continue
		}
		waiting++
		if m.IsWaiting {
			idle = append(idle, m)
		}
	}
	if surplus := min(waiting-allowed, len(idle)); surplus > 0 {
		return Decision{Delete: deletions(idle[:surplus], func(Machine) string { return "no host is free for it; it is made again when one is" })}
	}
	return Decision{Create: max(0, min(replicas-len(remaining), allowed-waiting))}
}

// firstChosen returns those of the surplus Machines that are deleted whatever is found out about the unknown ones: none of those, and as many fewer. The
// others are deleted when nothing is unknown any more. Where all are surplus there is nothing to choose.
//
// Without the last: a Machine waits for ever for what was not restored. Its message says to scale the NodePool down, and at 0 it still waits.
//
// Without it: the management cluster is restored from a backup, which drops status, and a pool of ten is scaled to nine. All ten run and name no host yet,
// so each of them counts as one without a host. The first of the list is deleted: its node is drained and erased, although another one is broken.
func firstChosen(sorted []Machine, surplus int) []Machine {
	if surplus == len(sorted) {
		return sorted
	}
	known := slices.DeleteFunc(slices.Clone(sorted), func(m Machine) bool { return m.IsUnknown })
	return known[:max(0, surplus-(len(sorted)-len(known)))]
}

func deletions(machines []Machine, reason func(Machine) string) []Deletion {
	all := make([]Deletion, len(machines))
	for i, m := range machines {
		all[i] = Deletion{Name: m.Name, Reason: reason(m)}
	}
	return all
}

// byDeletionOrder orders Machines as the package comment says.
func byDeletionOrder(a, b Machine) int {
	return cmp.Or(
		compareBool(a.HasHost, b.HasHost),
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
	case m.IsUnknown:
		return "no Machine is asked for"
	case !m.HasHost:
		return "it has no host"
	case !m.Ready:
		return "it is not Ready"
	case !m.UpToDate:
		return "its revision is outdated"
	}
	return "it is the newest"
}
