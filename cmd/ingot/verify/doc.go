// Package verify implements `ingot verify`, which compares what a cluster shows of a node with what its NodeType promises, with the
// checks of the manager. It reads files such as `kubectl get node NAME -o json` writes, and needs no cluster.
package verify
