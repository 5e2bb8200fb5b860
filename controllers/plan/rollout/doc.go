// Package rollout decides the next step of a Rollout: which Machine of a NodeType is moved to the target revision now, and
// when the Rollout stops. Plan computes a Decision from Facts. It is a pure function: it has no client, reads no clock
// and keeps no state.
//
// # Order
//
// The canary goes first and must stay Ready for the bake time. Its Machines are Ready when they are chosen. Any failure in the
// canary stops the rollout. The other Machines follow: first those that are broken, then other Machines that are down, then as
// many at once as the budget of the NodeType and the budget of their NodePool allow. More failures than the failure budget stop
// the rollout. The rest of the order is by NodePool, namespace and name. A rollout back to the stable revision has no canary,
// because that revision is proven.
//
// # Machines that do not work
//
// A Machine without a host is neither unavailable nor part of what a percentage is taken of. Nothing waits for it. Once the
// canary has baked it is given the target, so that it is installed with it when it gets a host.
//
// A broken Machine (see isBroken) is moved without regard to the budgets, because that takes nothing away. It is first written to
// status.brokenBefore. While it is listed there, which is until it is Ready with the target, its failing stops nothing, and does
// not keep the Rollout from being Done. Without that, a failed disk would stop every rollout, and then its undo.
//
// A Machine that lost Ready and is still in time is unavailable but not broken. It is moved only while the budgets are not
// exceeded: if the network of a whole rack fails for a minute, nothing is started.
//
// When no Ready Machine can be the canary, because none exists or its tenant does not answer, Machines that are not Ready are the
// canary. A broken one that fails there is replaced by the next. The others follow only when one of them has baked.
//
// When Machines are Ready and the budgets have no room, the canary waits, and the message names who takes the room. Only a
// Machine with a revision that is not proven may be the canary then, so that a mended NodeType goes on from a Rollout that stopped, also
// when it is mended more than once.
//
// A canary that is deleted or set aside proves nothing. Where no Machine can take its place, it stays named in status.canary, and the
// Rollout is not Done: its revision does not become the stable one.
//
// # Safety
//
// A Machine that is Ready is first written to status.inProgress, and started only by a later decision that reads it
// there. Until it is observed as moved (labeled by this Rollout, installed with the target, Ready), it counts as
// unavailable, whatever the cache shows. It is not taken off the list before that, because a request to start it may
// still be on its way. A Machine that is down needs no such record: its request carries the resource version
// that was observed, so it fails when the Machine has become Ready.
//
// A Rollout begins when the Rollout before it is settled. It first labels the Machines that the earlier one has left in
// status.handedOver. The label changes their resource version, so a late request of the earlier Rollout fails. Until
// they are observed with the label, these Machines count as unavailable.
//
// A Machine that has a host counts against the budgets when it is not Ready or when its desired revision is not the installed one,
// whoever changed it. A Machine has failed when this Rollout moved it and its Ready condition has a reason that does not
// pass. A Machine that recovers no longer counts, but a stopped rollout continues only when a person pauses and
// resumes it.
//
// # Tenants
//
// In a cluster that tenants share, claims hold devices of the nodes. Before a Machine is started, status.inUse counts them by DeviceClass, also for one that
// is down and whose pods still run. The counts are never lowered while the Machine is on its way, because claims leave with the pods of a node that is
// drained. A Rollout takes them over from the one before it.
//
// A class with a maxUnavailable has a budget beside those of the NodeType and the NodePool: a Machine is chosen, and then started, only if the devices that
// are held on its node now, those in status.inUse, and those in use in Rollouts of other NodeTypes do not exceed it. Two Rollouts that each choose a Machine
// before they see the other one's would wait for each other; the one with the lower name then goes first. While the claims cannot be read, a Machine with a
// node is blocked.
//
// # Terms
//
//   - to label: to set the label v1alpha1.LabelRollout of a Machine to the name of the Rollout. Messages say "to mark".
//   - forgiven: a failed Machine whose failure no longer counts, because a person resumed the Rollout after it stopped. It is
//     listed in status.forgiven. The message of a Rollout that is Done says "given up".
//   - set aside: broken before this Rollout moved it, and broken again.
//   - stage: the canary, until it has baked; then all Machines.
//   - moved: started by this Rollout and Ready with the target.
package rollout
