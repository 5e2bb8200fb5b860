// Package simulate implements `ingot rollout simulate`, which shows how a change of a NodeType would reach a fleet. It reads the
// user's own NodeType and NodePools from files, simulates the rollout with the manager's planner and with Machines in virtual
// time, and prints what happens. It needs no cluster.
package simulate
