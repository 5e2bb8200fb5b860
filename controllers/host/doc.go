// Package host is the controller of the BareMetalHosts of redfish NodeProviders. It replaces the baremetal-operator for them, with the
// same states, annotations and error types. The decisions are in controllers/plan/host.
//
// The controller reconciles the hosts of a namespace if the annotation ingot.dev/node-provider of the namespace names a NodeProvider
// whose hostNamespace it is, and if no host in it has the finalizer of the baremetal-operator. Two controllers that drive the same BMC
// would undo each other's actions.
//
// # One server, one host
//
// Before anything else each reconcile looks for other BareMetalHosts, in all namespaces, that are the same server (packages hostindex and
// plan/sameserver). While there is one, the BMC is not even asked, and the host reports the error SameServer. A change of either host starts a
// reconcile of the other one.
//
// # Order of writes
//
// The state of a host is in HostRecord.status and in BareMetalHost.status. Every reconcile has these steps:
//
//  1. Write HostRecord.status: the intent (the wanted attempt and its Machine, lastTenant, the withdrawn proof of an erase) and the
//     observed facts (the outcome of the attempt, installed, erased, power).
//  2. Set the labels of the host by the inventory, so that no host becomes available with labels of hardware that it no longer has
//     (the rules are in controllers/plan/inventory.HostLabelChange).
//  3. Request at most one action from the installer. If its result changes the error of the host, write HostRecord.status.error.
//  4. Remove the annotations whose requests were carried out.
//  5. Write Metal3's HardwareData when the hardware has changed, then BareMetalHost.status, and then publish events and metrics.
//
// The record is written first because only it shows whether a host is clean. A host becomes available only after the proof of the erase
// is stored, and a disk is changed only after the record names the Machine. If the process ends between steps 1 and 5, the
// BareMetalHost is one state behind, and the next reconcile derives its status from the record.
//
// The host controller does not write status.attempt of the record. Ingot's own installer stores its state there (package sessions).
//
// The writes of steps 1 and 5 have an optimistic lock. Both objects are read from the cache, but are never older than the last write of
// this process (package readyourwrites). If another process has changed the record, such as the boot service of another replica, the
// write of step 1 fails and the decision is made again.
//
// After a restart or a change of the leader the cache may lack a write of the former leader. Two reads from the API server prevent harm: a
// host is read if its generation is older than the one that the record was written for, and the record is read before the power is
// switched without a write.
//
// # Credentials
//
// The Secret of a BMC is read from the API server and cached for half of Timeouts.IdleInterval, unless the BMC refuses it or it changes. The names and
// versions of the Secrets of host namespaces are watched (package secretwatch), so that a changed Secret is used at once, and so is one that is made or
// deleted. Where they may not be watched, a changed Secret is used within Timeouts.IdleInterval.
package host
