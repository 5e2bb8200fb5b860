// Package tenant examines a Kubernetes cluster before Ingot's nodes join it, and prints what makes it a TenantCluster.
//
// What Ingot would find out node by node, hours later and on hardware, is asked beforehand: whether the kubeconfig may be used
// at all, whether its user has the rights that Ingot needs, whether the versions go together, whether a node can join and
// be given its certificate, and whether the DaemonSets that a node needs tolerate the gate. Every check only reads, except the
// trial of a join, which must be asked for.
package tenant
