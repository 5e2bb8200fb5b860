// Package sessions keeps the boot service's sessions in HostRecords: it implements netboot.Store.
//
// A session is HostRecord.status.attempt together with what the BareMetalHost says of the server (boot MAC address, root
// device hints) and of the claim (the Secrets of the config drive). Nothing is kept in the process, so every replica, leader
// or not, serves every host. HostRecords are written under an optimistic lock. What was read of them a moment ago serves to let an
// agent in and to try a write; whoever is refused, and nothing written, is so on what the API server itself has.
//
// The host controller records an attempt before the installer is called for it; the installer then finds the session
// as if it had begun it. What belongs to the controller in an attempt (for which Machine it is, when its end was
// accounted) is kept by every Update.
//
// An inventory is kept in two places: HostRecord.status.inventory, and, for names, speeds and serial numbers of NICs and disks,
// BareMetalHost.status.hardware, where Metal3's users look for them. Of PCI devices only GPUs are kept, as counts.
package sessions
