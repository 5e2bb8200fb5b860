// Package invariants watches a whole pipeline from the outside, through the API servers alone, and reports where one of the
// promises that must always hold did not:
//
//  1. A host has at most one Machine, and a Machine at most one host.
//  2. While the gate taint is on a Node, the scheduler binds no pod there that lacks its toleration, and the taint is there
//     from the creation of the Node object.
//  3. No host with an unfinished or failed erase is claimed.
//  6. No credential or token appears in an event, a status or a log.
//
// Resource versions of one API server order the changes of all its objects, so that "the pod was bound while the Node was
// gated" is decided exactly, however late the events arrive.
package invariants
