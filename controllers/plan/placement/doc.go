// Package placement chooses a host for a Machine. It also says why every other host was passed over, and which NodeTypes a host fits.
//
// A host is passed over unless everything about it is known and clean: an unknown power state, an unfinished erase or
// the data of another tenant prevents its claim. The choice is the same each time for one Machine and differs between
// Machines (rendezvous hashing), so that several Machines, and several managers, that observe the same free hosts
// choose different ones. The choice is only a proposal: the claim is an optimistic lock on the host's consumerRef.
package placement
