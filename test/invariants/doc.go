// Package invariants watches a pipeline through the API servers and reports violations of these invariants:
//
//  1. A host has at most one Machine, and a Machine at most one host.
//  2. While the gate taint is on a Node, the scheduler binds no pod there that lacks its toleration, and the taint is there
//     from the creation of the Node object.
//  3. No host with an unfinished or failed erase is claimed.
//  6. No credential or token appears in an event, a status or a log.
//
// The resource versions of one API server order the changes of all its objects. Whether a pod was bound while the gate taint was on its
// Node is therefore decided exactly, also when the events arrive late.
package invariants
