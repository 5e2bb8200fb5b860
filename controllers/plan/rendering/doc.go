// Package rendering is the promise of a NodeTypeRevision: it makes the NodeTypeRendering of a plan, picks the one that a revision
// has, and compares two of them.
//
// presentation.Resolve runs once for a revision. What it made is kept as a NodeTypeRendering, which never changes, so that a
// new version of Ingot that would resolve the revision otherwise judges no node by another promise than the one that it was
// installed for. Differences says in words what the new version would do, and a Rollout brings that to the Machines when a
// person asks for it.
//
// A rendering is named by a digest of what shapes or judges a node. Hints and warnings, which only people read, are not in it, so
// that a version with better sentences does not make another rendering.
package rendering
