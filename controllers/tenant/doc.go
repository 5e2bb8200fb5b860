// Package tenant keeps the TenantClusters: it reads their kubeconfigs, hands them to the tenantaccess.Registry, and
// reports whether and why not the clusters can be used.
//
// Kubeconfig Secrets are read one by one and never watched, so that the manager needs no right to list Secrets. A
// changed kubeconfig is seen within a minute.
package tenant
