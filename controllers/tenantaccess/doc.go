// Package tenantaccess holds one client set per TenantCluster.
//
// Tenant clusters are not trusted. A kubeconfig is vetted before any of its fields is used, and every tenant has its own
// connections, rate limit, timeouts, back-off and probe. Registry.For never waits for a tenant: it returns an Access or an error with
// a reason at once. A tenant that accepts connections and never answers blocks only the goroutines of its own client set.
//
// If a tenant stops answering later, also in the middle of a response, only the requests that are in flight wait for their timeout. The
// first request that times out makes the tenant unusable for all callers until a probe succeeds. Shares sees to it that the reconciles
// which wait meanwhile occupy no more than a quarter of the workers of their controller while others need them. A tenant that answers probes and stalls the calls
// that follow is tried again after growing pauses.
//
// No tenant fills the memory of the manager. A meter estimates from the JSON text that arrives how much memory it takes once it is decoded:
// for each response, for each event of a watch, and for all responses of a tenant together until the reconcile that asked for them ends.
// A ledger counts what the caches keep, across the pages of a list and the events of a watch. A book adds up what is kept and what arrives by
// cluster, by namespace and for all tenants, because the TenantClusters of a namespace are one tenant. An answer that finds no room beside
// those of other namespaces fails, and says nothing about its tenant: the reconcile is repeated. A tenant that exceeds a limit is suspended
// with the reason TenantTooLarge: its caches are stopped and let go, and it is tried again at growing intervals. Only JSON is accepted,
// because the decoded size of other formats is not known before they are decoded.
//
// The Nodes of a tenant are watched and, as long as it serves resource.k8s.io/v1, its ResourceSlices. Both are trimmed on arrival to the
// fields that are read, before anything keeps them. Every probe reads which APIs are served, so that the manager needs no restart after an
// upgrade of a tenant. All other objects (Pods, Secrets, DaemonSets) are read from the API server, so that the manager does not cache the
// tenants' Secrets.
package tenantaccess
