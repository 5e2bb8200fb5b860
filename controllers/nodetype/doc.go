// Package nodetype keeps the NodeTypes: it says whether a NodeType can make nodes at all, before a machine is touched, and
// what is not certain about them; counts hosts and Machines; claims the provider's host namespace; makes the NodeTypeRevision of what the NodeType says
// now, its NodeTypeRendering and the Rollout that brings it to the Machines; and removes revisions and Rollouts that are no longer kept.
//
// A revision is rendered once. What this version of Ingot would make of it now is only compared with what is kept, and told in the
// condition RenderingCurrent; spec.rendering asks for it.
//
// Which revision is the target and which stable, and when a Rollout is made, controllers/plan/revisionrollout decides. The
// status names the target before the Rollout to it is made, and the Rollout is made on what the API server itself says
// of Rollouts and Machines, not on a cache that may lag.
package nodetype
