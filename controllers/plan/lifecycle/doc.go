// Package lifecycle decides the next step of one Machine's life. Plan takes one value, Facts, and returns one value,
// Decision; it holds no client, reads no clock and remembers nothing.
//
// The life is the table in edges.go; lifecycle.md is rendered from it. In every phase Plan first looks for an edge that
// holds. If one does, the Decision is that edge: a status to write and no side effect, so that the intent is recorded
// before anything follows from it. If none does, the Decision is the phase's own work: at most one Action, and what
// the Machine waits for.
//
// Three rules carry the safety of it. A host is claimed only when it is the one that status.hostRef names already, so
// a Machine that was interrupted between the two writes goes on with the same host. Whoever acts on a host does so
// under its resource version as seen in Facts, so a decision about an older state never lands. And a disk is touched
// only behind the fence: evicted or out of time, power-off confirmed, Node object gone.
package lifecycle
