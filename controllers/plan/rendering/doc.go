// Package rendering makes NodeTypeRenderings from plans, chooses the one that a NodeTypeRevision gets, and compares plans. It is
// pure: package nodetype reads and writes the objects.
//
// presentation.Resolve runs once for a revision, and its plan is stored as a NodeTypeRendering, which never changes. A newer
// version of Ingot may resolve the same revision to another plan. It still judges each node by the plan that the node was
// installed with. Differences says in sentences what the newer version would change. A Rollout moves Machines to the new
// rendering when a person asks for it.
//
// The name of a rendering contains a digest of everything that shapes or judges a node. Hints and warnings are not part of it,
// because only people read them: a version with better sentences makes no other rendering.
package rendering
