// Package agentlogs keeps the end of the log of each agent that is at work: in memory, and at intervals in a store, where it stays with the host until
// the agent of a later attempt writes.
//
// An agent may send its chunks to several replicas. Each of them asks for what it lacks, so that each has the whole end of the log, and the store keeps
// the longest.
package agentlogs
