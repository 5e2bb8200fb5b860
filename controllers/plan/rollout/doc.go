// Package rollout decides the next step of a Rollout: which Machines of a NodeType move to its target revision now, and
// when to stop. Plan takes one value, Facts, and returns one value, Decision; it holds no client, reads no clock and
// remembers nothing.
//
// The order. First the canary, which must stay Ready for the bake time; any failure in it stops the rollout. Then the
// others, as many at once as the NodeType's budget and that of each NodePool leave room for; more failures than the
// failure budget stop it. Machines that are not Ready go first, since nothing is lost by moving them; then by NodePool,
// namespace and name. A return to the stable revision has no canary: that revision was proven before.
//
// Three rules carry the safety of it. Intent before effect: a Machine is named in status.inProgress by one decision, and
// only a later one that reads it there starts it. Who is named there counts as unavailable, whatever a cache shows,
// until it is seen marked by this Rollout, installed with its revision and Ready; nobody is taken off that list
// unstarted, because a request to start it may still be under way. Machines that are unavailable anyway need no such
// intent: they are started under the resource version that shows them so. And a Rollout begins only when the one before
// it has let go for good, and first marks what that one had named, under their resource version too, so that a late request
// of the older Rollout finds a changed Machine and fails. Without that mark they count as unavailable.
//
// Every Machine that is not Ready, or whose wanted revision is not the installed one, counts against the budgets,
// whatever made it so. Failures are typed reasons of Machines that this Rollout moved; a Machine that recovers counts no
// more, but a stopped rollout goes on only when a person says so.
package rollout
