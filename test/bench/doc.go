// Bench measures a fleet. It runs the manager, a management cluster, a tenant's cluster and a rack of simulated servers, each as a
// process of its own on this machine. First every server goes from powered off to admitted node; then the fleet is left alone, and
// its steady state is measured.
//
//	ingot-bench [-provider redfish|metal3] [-machines N] [-steady D] [-timeout D] [-dir DIR] [-profile] [-tenant-qps N]
//
// With -provider ironic the servers are nodes of a real Ironic with fake-hardware, and Ingot is compared with a loop of bare
// requests to the same Ironic, three times in turn. The time of both is that until Ironic has the last node active.
//
//	ingot-bench -provider ironic [-machines N] [-timeout D] [-dir DIR] [-tenant-qps N]
//
// It prints what it measured as the tables of README.md, and asserts nothing about time: it fails when a Machine does not
// become Ready, or a node does not become active. Everything listens on loopback, and whatever was started ends with it.
package main
