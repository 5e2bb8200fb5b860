// Package host decides what happens next to a BareMetalHost that Ingot itself serves. Plan takes one value, Facts, and
// returns one, Decision; it holds no client, no clock and no randomness.
//
// States, annotations and error types are Metal3's, so that people and programs that know BareMetalHosts need learn nothing. The life
// of a host is the tables in edges.go; host.md is rendered from them. Plan first draws the consequences of an attempt that has ended
// (package plan/outcome). Then it takes the edges that hold, one after the other; a host that becomes available stays so
// until that is written. Then it takes the steps of the state that the host is in (steps.go), until one of them waits or acts: a Decision
// has at most one Action.
//
// Which attempt is wanted of a host is decided here. How it goes is its installer's: package hardware says who owns what. The same holds
// for power: a state of power is wanted here, and since when is recorded; the installer asks for it.
//
// # Unknown is not clean
//
// A host is clean when nothing of ours was ever on its disks (no lastTenant, nothing installed), or when the proof of an
// erase stands (erased) and nothing was installed since. Only a clean host becomes, and stays, available; every other one
// goes through deprovisioning. In particular:
//
//   - A brand-new host is available after its inspection without an erase, as in Metal3 with cleaning disabled: nobody
//     asked us to destroy what is on it, and no tenant of ours has been there. Annotate it with ingot.dev/erase to have it erased.
//   - A host that has a state already while its HostRecord is new (the record was lost, or the host comes from another
//     system) has unknown content: its lastTenant becomes UnknownTenant, which is no TenantCluster's name, so that the rules for
//     crossing tenants hold for whoever is next. When it is not provisioned it is erased first, by at least Metadata.
//   - Policy None is a decision too: it leaves a proof with mode None.
//   - A host whose BareMetalHost.status was lost while a Machine runs on it is provisioned: its record says what is installed and for
//     whom, and nothing is erased under a Machine.
//   - A record that an earlier version of Ingot wrote says too little: the host is in error (OlderShape), and nothing is done with it.
//
// lastTenant is written, and the proof of the last erase withdrawn, with the intent to install, before the first byte.
// An erase that was begun is never replaced by a weaker one. It counts when the installer says so and the BMC confirms power-off.
//
// # Intent before effect
//
// An attempt begins as a record alone (Decision.Record.Wanted, no Action); the next Plan that finds it there asks for
// the action. A process killed between the two goes on from the record. An installation is asked for only once the state
// provisioning is written, since that write fails when the claim was changed meanwhile. Numbers grow by one; a record that was lost
// begins at the seconds since 1970, above all that can have been counted.
//
// # Few writes
//
// Every write is a request to the management cluster, of which a Machine has a budget. The first intent for a host goes with its
// new state, and a state that is only passed through is not written. Power is confirmed when somebody may wait for it: not while an
// installer switches it, and not for a claim that its image follows within claimTime. How far a running attempt is, its
// installer keeps.
//
// # In place
//
// A Machine rolls on the host that it has: when HostRecord.spec names another attempt or image than is installed, and
// spec.online asks for it, a provisioned host goes to provisioning at once. Nothing is deprovisioned and nothing erased: the
// root device is written anew, and data on other disks stays with the Machine. While spec.online is false nothing is written.
// A running installation of something else is cancelled first.
//
// # Failures
//
// An attempt that fails is tried again with growing pauses until three have failed in a row; DigestMismatch, ImageInvalid and NoRootDevice
// are not tried again by themselves, since nothing changes by itself. Then the host waits for a new value of the
// annotation ingot.dev/retry, for another Machine or attempt, or for its release. Between attempts the server is off, so that no
// earlier system that is still on its disk comes back. A provisioned host is never taken down because of an error.
package host
