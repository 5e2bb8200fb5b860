// Package tenantaccess holds one client set per TenantCluster.
//
// Tenant clusters are not trusted. A kubeconfig is vetted before any of its fields is used, and every tenant has its own
// connections, rate limit, timeouts, back-off and probe. Registry.For never waits for a tenant: it returns an Access or an error with
// a reason at once. A tenant that accepts connections and never answers blocks only the goroutines of its own client set.
//
// If a tenant stops answering later, only the requests that are in flight wait for their timeout. The first request that times out
// makes the tenant unusable for all callers until a probe succeeds. The size of every response is limited.
//
// The Nodes of a tenant are watched and, as long as it serves resource.k8s.io/v1, its ResourceSlices. Both are trimmed before they are
// cached. Every probe reads which APIs are served, so that the manager needs no restart after an upgrade of a tenant. All other objects
// (Pods, Secrets, DaemonSets) are read from the API server, so that the manager does not cache the tenants' Secrets.
package tenantaccess
