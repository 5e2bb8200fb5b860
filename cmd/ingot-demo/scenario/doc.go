// Package scenario runs the steps of the demo and asserts their results: a management cluster and tenant clusters, a rack of simulated
// servers and the real manager on one machine.
//
// The servers are registered and inspected. Machines claim them, install an image that was just packed, join a tenant's cluster and are
// validated. A pod of the tenant waits until the gate is lifted and then runs. One server loses a GPU at boot, is kept out by the name
// of the check, and is admitted after its repair. A new image is rolled out, and a bad one stops at its canary and is rolled back. At last
// one Machine is released, and its host is erased and available again.
package scenario
