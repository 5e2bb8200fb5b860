// Package verify is `ingot verify`: what a cluster shows of a node against what its NodeType promises, check by check, with
// the verdict that the manager uses. It reads files, such as `kubectl get node NAME -o json` writes, and asks no cluster.
package verify
