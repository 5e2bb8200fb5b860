// Package rollout moves the Machines of a NodeType to its target revision and rendering, as far as controllers/plan/rollout says.
// It only sets spec.revision and spec.rendering of a Machine, together with the label that names the Rollout; what follows is the
// Machine's own life.
//
// A Rollout is read with the Machines, the NodePools and the TenantClusters from the cache, which may lag. That is safe,
// because everything is written under the version that was read: the status, which names a Machine before it is started, and
// the Machine. What the planner may not conclude from a cache is that the NodeType asks for another revision, since that
// ends a Rollout for good: that is read from the API server itself.
//
// A thousand Machines that install report progress all the time. Only a change that the planner decides by starts a
// reconcile, a moment later so that many count as one, and the status is written only when it differs.
package rollout
