// Bench measures a fleet. It runs the manager, a management cluster, a tenant's cluster and a rack of simulated servers, each as a
// process of its own on this machine. First every server goes from powered off to admitted node; then the fleet is left alone, and
// its steady state is measured.
//
//	ingot-bench [-machines N] [-steady D] [-timeout D] [-dir DIR] [-profile] [-tenant-qps N]
//
// It prints what it measured as the tables of README.md, and asserts nothing about time: it fails when a Machine does not
// become Ready. Everything listens on loopback, and whatever was started ends with it.
package main
