// Package peers holds what each peer may cost the manager with one message: the worst that its bounds let through. What all of them may cost together is the sum
// over the peers of what is at work at the same time, which the packages that talk to them limit: one request of each agent, 64 hosts, one list of each Ironic,
// and tenants.memory.
package peers
