// Package host decides what happens next to a BareMetalHost that Ingot itself serves. Plan takes one value, Facts, and
// returns one, Decision. It holds no client, no clock and no randomness.
//
// States, annotations and error types are those of Metal3, so that people and programs that know BareMetalHosts can use them. The life
// of a host is the tables of edges in edges.go, and host.md is rendered from them. Plan first writes the outcome of an attempt that has
// ended (outcome.go). Then it follows the edges whose conditions hold, one after the other; a host that becomes available stays so
// until that is written. Then it runs the steps of the state that the host is in (steps.go), until one of them waits or acts: a Decision
// has at most one Action.
//
// This package decides which attempt a host needs. The progress of the attempt belongs to the installer: package hardware says who owns
// what. The same is true of power: this package requests a power state and records since when, and the installer brings it about.
//
// # Unknown is not clean
//
// A host is clean when nothing of ours was ever on its disks (no lastTenant, nothing installed), or when there is proof of an
// erase (erased) and nothing was installed since. Only a clean host becomes and stays available; every other one
// goes through deprovisioning. In particular:
//
//   - A new host is available after its inspection without an erase, as in Metal3 with cleaning disabled: nobody
//     requested that its content be destroyed, and no tenant of ours has used it. Annotate it with ingot.dev/erase to have it erased.
//   - A host that has a state already while its HostRecord is new (the record was lost, or the host comes from another
//     system) has unknown content. Its lastTenant becomes unknownTenant, which is no TenantCluster's name, so that the rules for
//     another tenant apply to whoever is next. When it is not provisioned it is erased first, with at least the mode Metadata.
//   - The policy None leaves a proof too, with the mode None.
//   - A host whose BareMetalHost.status was lost while a Machine runs on it is provisioned: its record says what is installed and for
//     whom, and nothing is erased under a Machine.
//   - A record that an earlier version of Ingot wrote says too little: the host reports the error OlderShape, and nothing is done with it.
//
// An attempt to install writes lastTenant and removes the proof of the last erase when its intent is recorded, before the first byte.
// An erase that was begun is never replaced by a weaker one. It counts when the installer reports success and the BMC confirms the power-off.
//
// # Intent before effect
//
// An attempt begins as a record alone (Decision.Record.Wanted, no Action). The next Plan finds it there and returns
// the Action. A process that is stopped between the two continues from the record. An installation is requested only after the state
// provisioning is written, because that write fails when the claim was changed meanwhile. Attempt numbers increase by one; after a record
// was lost they continue from the seconds since 1970, which is more than any number before.
//
// # Few writes
//
// Every write is a request to the management cluster, and the number of requests for a Machine is limited. The first intent for a host is
// written together with its new state, and a state that the host only passes through is not written. The power is recorded when somebody may
// wait for it: not while an installer switches it, and not for a claim whose image follows within claimPeriod. The progress of a running
// attempt is kept by its installer.
//
// # In place
//
// A Machine is rolled on the host that it has: when HostRecord.spec names another attempt or image than is installed, and
// spec.online is true, a provisioned host goes to provisioning at once. Nothing is deprovisioned and nothing erased: the
// root device is written again, and data on other disks stays with the Machine. While spec.online is false nothing is written.
// A running installation of something else is cancelled first.
//
// # One server, one host
//
// While another host is the same server (the problem SameServer), no action is requested, no edge is followed but those of the removal, and the
// power state counts as unknown: the BMC may be that of the other host, so its answer proves no power-off. A deleted host without data of a
// tenant goes at once and leaves the server as it is. One with such data waits, or is given up by an administrator. A clean host records that the
// other one has such data (sharedTenant), so that it is erased before it is available when the other one is gone.
//
// # Failures
//
// A failed attempt is tried again after increasing pauses until three have failed in a row. DigestMismatch, ImageInvalid and NoRootDevice
// are not tried again automatically, because another attempt would meet the same failure. Then the host waits for a new value of the
// annotation ingot.dev/retry, for another Machine or attempt, or for its release. Between attempts the server is off, so that an
// earlier system that is still on its disk does not boot. A provisioned host is never deprovisioned because of an error.
package host
