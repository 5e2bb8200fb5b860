// Package scenario is what the demo does: a management and a tenant control plane, a rack of simulated servers and the real manager on
// one machine, and a story that keeps its promises or exits with an error.
//
// The story: servers are registered and inspected; Machines claim them, install an image made on the spot, join the
// tenant's cluster and are validated; a tenant's pod waits behind the gate and then runs; one server loses a GPU at boot
// and is kept out by name of the check; one Machine is released and its host comes back to the pool, erased.
package scenario
