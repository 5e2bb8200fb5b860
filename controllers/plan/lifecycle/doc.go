// Package lifecycle decides the next step of one Machine's life. Plan takes one value, Facts, and returns one value,
// Decision. It holds no client, reads no clock and keeps no state of its own.
//
// The life of a Machine is the table of edges in phases.go, and lifecycle.md is rendered from it. In every phase Plan first looks for
// an edge whose condition holds. If there is one, the Decision follows it: a status to write and no side effect, so that the intent is
// recorded before anything follows from it. If there is none, Plan runs the steps of the phase, which phases.go lists too. A step
// changes nothing. It returns a result: done, when its goal is reached; a waitResult, with what the status reports; a timestampResult, with a
// status field to write before anything follows from it; or an actionResult, with an Action, which the machine controller does. A step that
// may have an Action is named planX. The planner combines the results of the steps and applies them to the Decision, which has at most one
// Action.
//
// Three rules keep this safe. A Machine claims only the host that status.hostRef names already, so one that was interrupted between the
// two writes continues with the same host. Every Action on a host carries the resource version of the host in Facts, so that a
// decision about an older state fails. A disk is written or erased only behind the fence: the pods are evicted or their time has passed,
// the BMC has confirmed the power-off, and the Node object is deleted.
//
// A roll begins when spec.revision or spec.rendering differs from the status. It is checked first: the revision exists and has a
// rendering, the tenant's API server answers, accepts its kubelet and serves the APIs that it needs, and the host reports no problem.
// Otherwise the condition UpToDate gives the reason, and no Node is drained. Then the same host is drained, powered off and
// installed again as the next attempt. This applies from Provisioning on, so that a bad image can be replaced while its installation
// is stuck. A roll never deletes a pod that may not be evicted, however long that takes. A roll can be cancelled until
// status.powerOffRequestedAt is set, which is written before the host is requested to power off. After that the host is installed
// again, with the revision that spec names by then. A release differs in two ways: the pods and the tenant have a limited time, and
// the disks are erased.
//
// A Machine whose spec.powerOff is set is drained and powered off in the same way, and stays in Draining without a deadline. Its Node is
// kept, because nothing touches the disk. When the field is cleared the Machine goes back to Validating, where the host is requested to
// power on, and the cordon is lifted when the verdict about a boot after the power-off passes. No roll begins while the field is set. A
// roll that is past the request to power off when the field is set goes on up to its installation, which waits.
//
// The files: facts.go has the input, phases.go the edges and steps, plan.go the planner and its Decision, guards.go the conditions that
// safety depends on, problems.go the reasons that keep a Machine from going on, report.go the conditions of the status. The steps are in
// install.go, join.go, teardown.go and poweroff.go.
package lifecycle
