// Package tenant is the controller of TenantClusters. It reads their kubeconfigs, gives them to the tenantaccess.Registry, and reports in
// the condition Ready whether the clusters can be used.
//
// Kubeconfig Secrets are read with get and are never watched, so that the manager needs no permission to list Secrets. A changed
// kubeconfig is used within a minute.
//
// A TenantCluster gets a finalizer in its first reconcile. If it is deleted while Machines refer to it, it remains and its kubeconfig
// stays in use, because Machines are drained and their Nodes are deleted with it. Ready then names these Machines. The same holds for Entitlements,
// whose objects in the cluster are removed with it. The finalizer is removed when lists from the API server have none of them any more.
package tenant
