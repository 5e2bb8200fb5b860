// Package lifecycle decides the next step of one Machine's life. Plan takes one value, Facts, and returns one value,
// Decision; it holds no client, reads no clock and remembers nothing.
//
// The life is the table in edges.go; lifecycle.md is rendered from it. In every phase Plan first looks for an edge that
// holds. If one does, the Decision is that edge: a status to write and no side effect, so that the intent is recorded
// before anything follows from it. If none does, the steps of the phase are taken, which are listed in phases.go. A step returns
// what it came to and changes nothing: next, when what it works towards is reached; wait, with what people are told; record, with
// a status field to write before anything follows from it; or act, with at most one Action for the whole list. The planner puts together what the steps returned and applies it to the Decision.
//
// Three rules carry the safety of it. A host is claimed only when it is the one that status.hostRef names already, so
// a Machine that was interrupted between the two writes goes on with the same host. Whoever acts on a host does so
// under its resource version as seen in Facts, so a decision about an older state never lands. And a disk is touched
// only behind the fence: evicted or out of time, power-off confirmed, Node object gone.
//
// A roll is a spec.revision, or a spec.rendering, that differs from the status's. It is looked at before it begins: the revision exists and can
// be rendered, the tenant answers, takes its kubelet and serves its API, the host is well; else condition UpToDate says what
// is in the way, and nothing is drained. Then the same host is emptied, stopped and installed again as the next attempt. That
// holds from Provisioning on, so a bad image is undone while it is stuck. A roll forces no pod, however late it is. It can be
// called off until status.powerOffRequestedAt is set, which is written before the power-off is asked for; afterwards what is wanted
// by then is installed, if need be the same revision again. A release differs in two things: pods and tenant have a time,
// and the disks are erased.
//
// Package facts has what a Decision depends on, and guards.go the questions that safety hangs on. The steps are in files by topic:
// claim.go, token.go, install.go, join.go, roll.go, fence.go and release.go. obstacle.go and verdict.go say in words what keeps a
// Machine, report.go writes the conditions.
package lifecycle
