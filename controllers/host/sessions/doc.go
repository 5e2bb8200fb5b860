// Package sessions stores the sessions of the boot service in HostRecords. It implements netboot.Store.
//
// A session consists of the wanted attempt (HostRecord.status.wanted, which the host controller writes), the progress of that attempt
// (status.attempt, which only this package writes), and fields of the BareMetalHost: the boot MAC address, the root device hints, and the
// Secrets of the config drive. No state is kept in the process, so every replica, leader or not, serves every host.
//
// HostRecords are written with an optimistic lock. A request of an agent is accepted, and a write is tried first, with HostRecords from
// the cache. A request is refused, or found to need no write, only by what was read from the API server.
//
// The host controller writes the wanted attempt before it calls the installer. The session then exists already, at its first step, and
// its first change is the first that is written. A change of an attempt that is not the wanted one is a Conflict and is not stored.
//
// The inventory that an agent reports is written to HostRecord.status.inventory, in the same write as its progress.
package sessions
