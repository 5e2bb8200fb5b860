// Package simulate is `ingot rollout simulate`: how a change of a NodeType would reach a fleet, before it does. It reads the
// user's own NodeType and NodePools from files, simulates the rollout with the planner that the manager uses and with
// simulated Machines in virtual time, and prints the story. It asks no cluster.
package simulate
