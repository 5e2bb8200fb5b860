// Bench measures a fleet: the manager, a management cluster, a tenant's cluster and a rack of simulated servers, each a
// process of its own, share this machine while every server goes from powered off to admitted node, and then stay as they
// are for a while.
//
//	ingot-bench [-machines N] [-steady D] [-timeout D] [-dir DIR] [-profile] [-tenant-qps N]
//
// It prints what it measured as the tables of README.md, and asserts nothing about time: it fails when a Machine does not
// become Ready. Everything listens on loopback, and whatever was started ends with it.
package main
