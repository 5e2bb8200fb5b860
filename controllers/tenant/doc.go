// Package tenant keeps the TenantClusters: it reads their kubeconfigs, hands them to the tenantaccess.Registry, and
// reports whether and why not the clusters can be used.
//
// Kubeconfig Secrets are read one by one and never watched, so that the manager needs no right to list Secrets. A
// changed kubeconfig is seen within a minute.
//
// A TenantCluster has a finalizer from its first reconcile on. When it is deleted while Machines refer to it, it stays and
// its kubeconfig stays usable, since a Machine is drained and its Node deleted through it; Ready then says which
// Machines hold it. It goes with the last one, after the Machines were listed at the API server itself.
package tenant
