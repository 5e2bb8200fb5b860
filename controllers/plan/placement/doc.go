// Package placement chooses a host for a Machine, and says of every other host why it was passed over.
//
// A host is passed over unless everything about it is known and clean: an unknown power state, an unfinished erase or
// another tenant's data keeps it in the pool. The choice is deterministic for one Machine and differs between
// Machines (rendezvous hashing), so that several Machines, and several managers, that look at the same free hosts
// reach for different ones. It is only a proposal: the claim itself is an optimistic lock on the host's consumerRef.
package placement
