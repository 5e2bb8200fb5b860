// Package tenant implements `ingot tenant add`, which examines a Kubernetes cluster before Ingot's nodes join it, and prints the
// objects that make it a TenantCluster.
//
// It checks beforehand what would otherwise fail hours later, on a server: whether the kubeconfig may be used, whether its user has
// the rights that Ingot needs, whether the versions are compatible, whether a node can join and get its certificate, and whether
// the DaemonSets that a node needs tolerate the gate. All checks only read, except the trial of a join, which needs --try-join.
package tenant
