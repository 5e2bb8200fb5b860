// Package revisionrollout decides how one revision of a NodeType follows another: which is its target and which its stable
// one, which Rollout must be made, and which revisions and Rollouts are no longer kept. A revision goes with its rendering
// everywhere here: another rendering of the same revision follows like another revision.
//
// The target is what the NodeType asks for. The stable revision, which new Machines get, follows only when a Rollout to
// the target is done, or at once while no Machine has any revision. Whoever sets the NodeType back makes the stable
// revision the target again, and a Rollout that brings back what was moved: that is the whole rollback.
//
// Of a NodeType's Rollouts only the newest moves Machines. Its number, the end of its name, tells: creation times have
// seconds, and a NodeType may change twice in one.
package revisionrollout
