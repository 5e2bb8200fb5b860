// Package rollout decides the next step of a Rollout: which Machine of a NodeType is moved to the target revision now, and
// when the Rollout stops. Plan computes a Decision from Facts. It is a pure function: it has no client, reads no clock
// and keeps no state.
//
// # Order
//
// The canary goes first and must stay Ready for the bake time. Any failure in the canary stops the rollout. The other
// Machines follow, as many at once as the budget of the NodeType and the budget of their NodePool allow. More failures
// than the failure budget stop the rollout. Machines that are not Ready go before Machines that are, because moving
// them takes no capacity away; the rest of the order is by NodePool, namespace and name. A rollout back to the stable
// revision has no canary, because that revision is proven.
//
// # Safety
//
// A Machine that is Ready is first written to status.inProgress, and started only by a later decision that reads it
// there. Until it is observed as moved (labeled by this Rollout, installed with the target, Ready), it counts as
// unavailable, whatever the cache shows. It is not taken off the list before that, because a request to start it may
// still be on its way. A Machine that is not Ready needs no such record: its request carries the resource version
// that was observed, so it fails when the Machine has become Ready.
//
// A Rollout begins when the Rollout before it is settled. It first labels the Machines that the earlier one had in
// status.inProgress. The label changes their resource version, so a late request of the earlier Rollout fails. Until
// they are observed with the label, these Machines count as unavailable.
//
// A Machine counts against the budgets when it is not Ready or when its desired revision is not the installed one,
// whoever changed it. A Machine has failed when this Rollout moved it and its Ready condition has a reason that does not
// pass. A Machine that recovers no longer counts, but a stopped rollout continues only when a person pauses and
// resumes it.
//
// # Terms
//
//   - to label: to set the label v1alpha1.LabelRollout of a Machine to the name of the Rollout. Messages say "to mark".
//   - forgiven: a failed Machine whose failure no longer counts, because a person resumed the Rollout after it stopped. It is
//     listed in status.forgiven. The message of a Rollout that is Done says "given up".
//   - stage: the canary, until it has baked; then all Machines.
//   - moved: started by this Rollout and Ready with the target.
package rollout
