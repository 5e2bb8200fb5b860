// Package ironic starts a real Ironic for tests: API and conductor as one process on loopback ports, with SQLite and no other service.
//
// The nodes are of its hardware type fake-hardware, whose power, boot and management are memory. With the deploy interface fake a node goes through all its
// states within a second. With direct it waits for an agent as on real servers, and Agent is one that speaks the agent's protocol and writes no disk:
// a test tells it which command fails.
package ironic
