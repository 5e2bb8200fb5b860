// Package diskrules decides what an agent may do to the disks that it lists.
//
// The boot service decides, and not the agent, because what a host's disks are is a secret that proves an erase: whoever passes for the agent and is told their
// serial numbers can report all of them as erased.
package diskrules
