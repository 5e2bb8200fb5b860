// Package nodetype is the controller of NodeTypes. It
//   - reports in the condition Ready whether nodes can be made from a NodeType, and its warnings;
//   - counts the hosts and Machines;
//   - creates the NodeTypeRevision for the current spec, its NodeTypeRendering, and the Rollout that moves the Machines to it;
//   - deletes revisions and Rollouts that are no longer needed.
//
// A revision is rendered once. The controller compares its rendering with the one that this version of Ingot would make, and reports the
// differences in the condition RenderingCurrent. A user selects the new rendering by spec.rendering.
//
// Package controllers/plan/revisionrollout decides which revision is the target, which one is stable, and when a Rollout is created. The
// status names the target before the Rollout to it is created. Before a Rollout is created, the Rollouts and Machines are read from the
// API server, because the cache may lag.
package nodetype
