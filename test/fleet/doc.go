// Package fleet starts a whole site on this machine, each part as a process of its own: the manager, a management cluster, tenants'
// clusters and a rack of simulated servers, with the objects of config/samples. Benchmarks and the ledger of costs measure it.
package fleet
