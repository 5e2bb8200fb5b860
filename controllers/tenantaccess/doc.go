// Package tenantaccess holds one client set per TenantCluster.
//
// Tenants are other people's clusters: a kubeconfig is vetted before anything of it is used, and every tenant has its
// own connections, rate limit, time-outs, back-off and probe. Nothing here waits for a tenant on a caller's time: For
// answers at once, with an Access or with a typed reason. A tenant that accepts connections and never answers keeps
// its own goroutines waiting, and nobody else's.
//
// A tenant that falls silent later keeps waiting only those who have asked it already: the first request without an answer
// loses the tenant for everybody, until a probe succeeds. No answer may be larger than its kind can need.
//
// Watched are Nodes and, as long as the tenant serves resource.k8s.io/v1, ResourceSlices; both are trimmed before they are
// kept. Every probe asks what is served, so that a tenant which is upgraded needs no restart of the manager. Everything else (Pods, Secrets, DaemonSets) is read by direct calls, so that no tenant's secrets lie in the
// manager's memory.
package tenantaccess
