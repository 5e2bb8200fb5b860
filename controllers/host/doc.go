// Package host serves the BareMetalHosts of redfish NodeProviders: it does for them what the baremetal-operator does for
// its own, with the same states, annotations and error types. What to do is decided by controllers/plan/host.
//
// A namespace is served when its annotation ingot.dev/node-provider names a NodeProvider whose hostNamespace it is, and none
// of its hosts carries the baremetal-operator's finalizer: two systems that drive one BMC destroy each other's work.
//
// # Order of writes
//
// A host has two statuses. In every reconcile
//
//  1. HostRecord.status is written: the intent (the attempt that is wanted and for whom, lastTenant, the withdrawn proof of an
//     erase), and the facts that the outside was seen to make true (its outcome, installed, erased, power);
//  2. the labels for GPUs are set by the inventory in it, so that no host is published as available under labels of
//     hardware that it no longer has (controllers/plan/inventory.GPULabelChange has the rules);
//  3. the one action is asked of the installer; where that changes why the host is in error, HostRecord.status.error is written;
//  4. annotations that were served are removed;
//  5. BareMetalHost.status is written, then events and metrics follow.
//
// The record comes first since it alone says whether a host is clean: "available" is never published before the
// proof of the erase is kept, nor is a disk touched before the record says for whom. A process killed between 1 and 5 leaves a
// BareMetalHost that is one state behind; the next reconcile derives it again from the record.
// status.attempt of the record is not the host controller's: Ingot's own installer keeps its state there (package sessions).
// The writes of 1 and 5 are under an optimistic lock. Both objects come from the cache, but never older than this process's last write of
// them (package readyourwrites): what the machine controller asks for arrives with the cache, and whoever else writes the record, as the
// boot service of another replica does, makes the write of a decision without it fail.
//
// What another process knew and this one's cache does not show yet, after a restart or a change of leaders, is found out before it
// does harm: a host of an older generation than the record was written for is read from the API server, and so is the record
// before power is switched without a write.
//
// # Credentials
//
// The Secret of a BMC is read from the API server with get and kept for a tenth of Timeouts.IdleInterval, half a minute, unless the BMC
// refuses it: a changed Secret is used within that time. Secrets are not watched: a host whose credentials are refused is looked at
// again after a pause.
package host
