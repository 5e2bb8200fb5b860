// Package inuse is the controller that keeps what Machines depend on: NodeTypes, NodeProviders, OSImages, NodeTypeRevisions and
// NodeTypeRenderings. It writes into status.usedBy how many objects of each kind use each of them, and gives each the finalizer ingot.dev/in-use.
//
// While something uses an object, the admission policy ingot-in-use refuses its deletion by what status.usedBy says. The finalizer keeps an
// object that was deleted all the same: before its first user was counted, by the garbage collector, or where the policy is not
// installed. It is removed when lists from the API server have no user any more.
//
// One reconcile does all objects, because one pass over the Machines tells the users of all of them.
package inuse
