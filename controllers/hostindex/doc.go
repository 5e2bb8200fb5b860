// Package hostindex finds the BareMetalHosts that are the same server, in all namespaces, by indexes of the manager's cache.
//
// BareMetalHosts are indexed by the keys of what their spec and status say, and HostRecords by those of their inventory. The decision
// whether two hosts are one server is in controllers/plan/sameserver.
package hostindex
