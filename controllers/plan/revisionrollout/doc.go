// Package revisionrollout decides the rollout of a NodeType's revisions: which one is the target and which one is stable, which
// Rollout must be created to move Machines between them, and which revisions and Rollouts are deleted. A revision always
// means a revision with its rendering: another rendering of the same revision is rolled out like another revision.
//
// The target is the revision that the NodeType's spec asks for. The stable revision is the one that new Machines get. It
// becomes the target when a Rollout to the target is Done, or at once while no Machine has a revision and no Rollout is active: what
// proves a revision is known to the Rollout alone. A person who sets
// the NodeType back makes the stable revision the target again, which creates a Rollout that moves Machines back: nothing
// else is needed for a rollback.
//
// Only the newest Rollout of a NodeType moves Machines. Which one is newest follows from the number at the end of its name,
// because creation timestamps have a resolution of one second, and a NodeType may change twice within one.
package revisionrollout
