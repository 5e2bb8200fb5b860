// Package sessions keeps the boot service's sessions in HostRecords: it implements netboot.Store.
//
// A session is what is wanted of a host (HostRecord.status.wanted, the host controller's), what is kept of that (status.attempt, which
// nobody but this package writes), and what the BareMetalHost says of the server (boot MAC address, root
// device hints) and of the claim (the Secrets of the config drive). Nothing is kept in the process, so every replica, leader
// or not, serves every host. HostRecords are written under an optimistic lock. What was read of them a moment ago serves to let an
// agent in and to try a write; whoever is refused, and nothing written, is so on what the API server itself has.
//
// The host controller records that an attempt is wanted before the installer is called for it; the installer then finds the session
// as if it had begun it, at its first step. The first change of it is the first that is written. Nothing is kept of an attempt that is
// not wanted: that is a Conflict.
//
// What an agent found is written to HostRecord.status.inventory, in one write with what it did.
package sessions
