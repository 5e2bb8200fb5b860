package lifecycle

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// situation is one decision of testdata/decisions.txt: a Machine in a phase, and what is different there.
type situation struct {
	name   string
	phase  v1alpha1.MachinePhase
	change func(*Facts)
}

// late sets the time to a moment after the deadline of the phase.
func late(f *Facts) { f.Now = f.Now.Add(2 * time.Hour) }

func unreachable(f *Facts) { f.Tenant.Reachable, f.Node, f.Token = false, Node{}, nil }

// ownNode is the Node of the Machine's present attempt.
func ownNode(f *Facts) Node {
	return Node{Found: true, UID: "node-uid", ProviderID: v1alpha1.ProviderID(f.Machine.UID, f.Machine.Status.Attempt), BootID: "boot-1"}
}

// off is a host whose power-off was requested and is confirmed.
func off(f *Facts) {
	now := metav1.NewMicroTime(f.Now)
	f.Machine.Status.PowerOffRequestedAt, f.Host.Online = &now, false
	f.Host.Record.Status.Power = &v1alpha1.HostPower{State: "Off", ObservedGeneration: f.Host.Generation, ObservedAt: now}
	f.Node = Node{}
}

// erased is a host that is available again after its erase.
func erased(f *Facts) {
	off(f)
	f.Host.ImageURL, f.Host.State, f.Host.Record.Status.Installed, f.Host.Record.Status.Wanted = "", metal3.StateAvailable, nil, nil
	f.Host.Record.Status.Erased = &v1alpha1.EraseProof{Mode: v1alpha1.EraseMetadata}
}

// judged is a Node of this attempt with a verdict about it.
func judged(f *Facts, result v1alpha1.CheckResult, checks ...v1alpha1.Check) {
	f.Node = ownNode(f)
	f.Machine.Status.Verdict = &v1alpha1.Verdict{
		Result: result, NodeUID: f.Node.UID, BootID: f.Node.BootID, Revision: f.Machine.Status.Revision, Rendering: f.Machine.Status.Rendering, Checks: checks,
	}
}

// atStep is a host whose installer is at a step of this Machine's installation.
func atStep(f *Facts, step string, since time.Duration, done, total int64) {
	at := metav1.NewMicroTime(f.Now.Add(-since))
	f.Host.ImageURL, f.Host.Online, f.Host.State = imageA.URL, true, metal3.StateProvisioning
	f.Host.Record.Status.Wanted = &v1alpha1.WantedAttempt{
		Number: 3, Operation: "Install", MachineUID: f.Machine.UID, MachineAttempt: f.Machine.Status.Attempt, Deadline: metav1.NewMicroTime(f.Now.Add(45 * time.Minute)),
	}
	f.Host.Record.Status.Attempt = &v1alpha1.HostAttempt{Number: 3, State: "Running", Step: step, StepAt: &at, DoneBytes: done, TotalBytes: total}
	if f.Token, f.Secret = nil, (Secret{}); !isServerStep[hardware.Step(step)] && step != "" {
		waits(f)
		f.Token = &Token{ID: "token-1", Expires: f.newTokenEnd()}
		f.Secret = Secret{Found: true, Attempt: f.Machine.Status.Attempt, HostAttempt: 3, TokenID: "token-1"}
	}
}

// waits is an agent that has asked for its config drive.
func waits(f *Facts) {
	at := metav1.NewMicroTime(f.Now)
	f.Host.Record.Status.Attempt.ConfigDriveAwaitedAt = &at
}

var gpuMissing = v1alpha1.Check{Name: "resource/nvidia.com/gpu", Result: v1alpha1.CheckFail, Observed: "7", Expected: "8"}

var situations = []situation{
	{"no NodeType", v1alpha1.MachinePending, func(f *Facts) { f.NodeType = NodeType{} }},
	{"a NodeType without conditions", v1alpha1.MachinePending, func(f *Facts) { f.NodeType.Ready = false }},
	{"a NodeType that is not Ready", v1alpha1.MachinePending, func(f *Facts) {
		f.NodeType.Ready, f.NodeType.Reason, f.NodeType.Message = false, "ImageMissing", "OSImage debian-13 does not exist"
	}},
	{"a NodeType without a stable revision", v1alpha1.MachinePending, func(f *Facts) { f.Revision = Revision{} }},
	{"no NodeProvider", v1alpha1.MachinePending, func(f *Facts) { f.Provider.Found = false }},
	{"a revision with a problem", v1alpha1.MachinePending, func(f *Facts) { f.Provider.Found, f.Revision.Problem = false, "it does not exist" }},
	{"no TenantCluster", v1alpha1.MachinePending, func(f *Facts) { f.Tenant = Tenant{} }},
	{"no TenantCluster and a deletion", v1alpha1.MachineReleasing, func(f *Facts) { f.Tenant = Tenant{} }},
	{"a TenantCluster that is being deleted", v1alpha1.MachinePending, func(f *Facts) { f.Tenant.Deleting = true }},
	{"a kubelet that is too new", v1alpha1.MachinePending, func(f *Facts) { f.Revision.Kubelet = "1.38.0" }},
	{"a kubelet that is too old", v1alpha1.MachinePending, func(f *Facts) { f.Revision.Kubelet = "1.33.9" }},
	{"a kubelet that is just new enough", v1alpha1.MachinePending, func(f *Facts) { f.Revision.Kubelet = "1.34.0" }},
	{"a tenant without DRA", v1alpha1.MachinePending, func(f *Facts) { f.Revision.DRA = true }},
	{"no host that fits", v1alpha1.MachinePending, func(f *Facts) {
		f.Placement = Placement{Reason: v1alpha1.ReasonNoHostAvailable, Message: "no host can be claimed: server-1 is powered on"}
	}},
	{"no placement yet", v1alpha1.MachinePending, func(f *Facts) { f.Placement = Placement{} }},
	{"no finalizer", v1alpha1.MachinePending, func(f *Facts) { f.Machine.Finalizer = false }},
	{"a free host", v1alpha1.MachineClaiming, nil},
	{"a host that no longer fits", v1alpha1.MachineClaiming, func(f *Facts) { f.Host.ClaimProblem = "is paused" }},
	{"a claim that takes long", v1alpha1.MachineClaiming, late},
	{"no HostRecord", v1alpha1.MachineProvisioning, func(f *Facts) { f.Host.Record = nil }},
	{"an empty HostRecord", v1alpha1.MachineProvisioning, func(f *Facts) { f.Host.Record.Spec = v1alpha1.HostRecordSpec{} }},
	{"everything to install", v1alpha1.MachineProvisioning, nil},
	{"an agent that has not asked for its config drive", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Loading", 0, 0, 0) }},
	{"an installer that needs the config drive to begin", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "PoweringOff", 0, 0, 0)
		f.Host.Record.Status.Wanted.ConfigDriveAwaitedAt, f.Host.Record.Status.Attempt = &f.Host.Record.Status.Wanted.Since, nil
	}},
	{"an agent that waits for its config drive", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Registered", 0, 0, 0); f.Token, f.Secret = nil, Secret{} }},
	{"an agent that waits, and a tenant that does not answer", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Registered", 0, 0, 0)
		f.Secret = Secret{}
		unreachable(f)
	}},
	{"an agent that waits on a paused host", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Registered", 0, 0, 0)
		f.Host.Paused, f.Token, f.Secret = true, nil, Secret{}
	}},
	{"an agent that waits, after the deadline of the phase", v1alpha1.MachineProvisioning, func(f *Facts) {
		late(f)
		atStep(f, "Registered", 0, 0, 0)
		f.Token, f.Secret = nil, Secret{}
	}},
	{"a token and no claim Secret", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Registered", 0, 0, 0); f.Secret = Secret{} }},
	{"a token without a claim Secret on a paused host", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Registered", 0, 0, 0)
		f.Host.Paused, f.Secret = true, Secret{}
	}},
	{"a token that was lost", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Writing", 0, 0, 0); f.Token = nil }},
	{"a token that ends before Joining may", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Writing", 0, 0, 0); f.Token.Expires = f.Token.Expires.Add(-time.Second) }},
	{"a token of an earlier installation", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Registered", 0, 0, 0); f.Secret.HostAttempt-- }},
	{"a claim Secret of an earlier attempt", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Registered", 0, 0, 0)
		f.Secret.Attempt, f.Secret.TokenID = f.Secret.Attempt-1, ""
	}},
	{"a host that nobody keeps a record of", v1alpha1.MachineProvisioning, func(f *Facts) { f.Provider.HasRecords, f.Host.Record = false, nil }},
	{"a token for a host that nobody keeps a record of", v1alpha1.MachineProvisioning, func(f *Facts) {
		f.Provider.HasRecords, f.Host.Record, f.Token = false, nil, &Token{ID: "token-1", Expires: f.Now.Add(3 * time.Hour)}
	}},
	{"a host that was deleted", v1alpha1.MachineProvisioning, func(f *Facts) { f.Host = nil }},
	{"a host that was returned", v1alpha1.MachineProvisioning, func(f *Facts) { f.Host.Consumer = ConsumerNone }},
	{"a host of another Machine", v1alpha1.MachineProvisioning, func(f *Facts) {
		f.Host.Consumer = ConsumerOther
		f.Token = &Token{ID: "token-1", Expires: f.Now.Add(time.Minute)}
	}},
	{"a paused host", v1alpha1.MachineProvisioning, func(f *Facts) { f.Host.Paused = true }},
	{"a detached host", v1alpha1.MachineProvisioning, func(f *Facts) { f.Host.Detached = true }},
	{"a host in error", v1alpha1.MachineProvisioning, func(f *Facts) {
		f.Host.Error, f.Host.ErrorReason = "provisioning error", "DiskError"
	}},
	{"a host in error without a reason", v1alpha1.MachineProvisioning, func(f *Facts) { f.Host.Error = "provisioning error" }},
	{"a revision that was deleted", v1alpha1.MachineProvisioning, func(f *Facts) { f.Revision.Problem = "it does not exist" }},
	{"a tenant that does not answer", v1alpha1.MachineProvisioning, unreachable},
	{"an installer that boots", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Booting", 0, 0, 0) }},
	{"an installer that boots too long", v1alpha1.MachineProvisioning, func(f *Facts) {
		late(f)
		atStep(f, "Booting", time.Hour, 0, 0)
	}},
	{"an image that is written too long", v1alpha1.MachineProvisioning, func(f *Facts) {
		late(f)
		atStep(f, "Writing", time.Hour, 1<<20, 1<<30)
	}},
	{"a host that does nothing for too long", v1alpha1.MachineProvisioning, func(f *Facts) {
		late(f)
		atStep(f, "", 0, 0, 0)
		f.Host.Record.Status.Wanted = nil
	}},
	{"the first bytes", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Writing", 29*time.Second, 1<<20, 1<<30) }},
	{"an image that is written for a while", v1alpha1.MachineProvisioning, func(f *Facts) { atStep(f, "Writing", 30*time.Second, 1<<20, 1<<30) }},
	{"an image that is half written", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Writing", 0, 1<<29, 1<<30)
		f.Machine.Status.Progress = &v1alpha1.Progress{Step: "Writing", TotalBytes: 1 << 30}
	}},
	{"an image that is nearly half written", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Writing", 0, 1<<29-1, 1<<30)
		f.Machine.Status.Progress = &v1alpha1.Progress{Step: "Writing", TotalBytes: 1 << 30}
	}},
	{"an image that is verified", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Verifying", 0, 1<<30, 1<<30)
		f.Machine.Status.Progress = &v1alpha1.Progress{Step: "Writing", DoneBytes: 1 << 29, TotalBytes: 1 << 30}
	}},
	{"an installation that failed", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Writing", 0, 1<<29, 1<<30)
		w := f.Host.Record.Status.Wanted
		w.Outcome, w.Reason, w.Message, w.Step = v1alpha1.AttemptFailed, "DigestMismatch", "the image has another digest", "Verifying"
	}},
	{"an image that is on the disk", v1alpha1.MachineProvisioning, func(f *Facts) {
		atStep(f, "Finishing", 0, 1<<30, 1<<30)
		f.Host.State, f.Host.Record.Status.Wanted.Outcome = metal3.StateProvisioned, v1alpha1.AttemptSucceeded
		f.Host.Record.Status.Installed = &v1alpha1.HostInstalled{MachineUID: f.Machine.UID, Attempt: f.Machine.Status.Attempt, Checksum: f.Revision.Image.Checksum, At: metav1.NewMicroTime(f.Now)}
	}},
	{"no Node", v1alpha1.MachineJoining, func(f *Facts) { f.Node = Node{} }},
	{"no Node for too long", v1alpha1.MachineJoining, func(f *Facts) { f.Node = Node{}; late(f) }},
	{"a Node", v1alpha1.MachineJoining, nil},
	{"a Node of something else", v1alpha1.MachineJoining, func(f *Facts) { f.Node = Node{Found: true, UID: "other", ProviderID: "aws:///i-1"} }},
	{"a Node of an earlier attempt", v1alpha1.MachineJoining, func(f *Facts) {
		f.Node = ownNode(f)
		f.Machine.Status.Attempt = 2
		f.Host.Installation = scope{Facts: *f}.installation(v1alpha1.InstallationComplete)
	}},
	{"a node of which the host does not say yet that it is installed", v1alpha1.MachineJoining, func(f *Facts) { f.Host.Installation = nil }},
	{"a tenant that does not answer at the join", v1alpha1.MachineJoining, unreachable},
	{"a Node that nobody has judged, just now", v1alpha1.MachineValidating, nil},
	{"a Node that nobody has judged", v1alpha1.MachineValidating, func(f *Facts) { f.Now = f.Now.Add(time.Minute) }},
	{"a check that fails", v1alpha1.MachineValidating, func(f *Facts) { judged(f, v1alpha1.CheckFail, gpuMissing) }},
	{"a check that fails for too long", v1alpha1.MachineValidating, func(f *Facts) { judged(f, v1alpha1.CheckFail, gpuMissing); late(f) }},
	{"a check that observes nothing", v1alpha1.MachineValidating, func(f *Facts) {
		judged(f, v1alpha1.CheckWait, v1alpha1.Check{Name: "kubelet", Result: v1alpha1.CheckPass}, v1alpha1.Check{Name: "driver", Result: v1alpha1.CheckWait, Expected: "580.126.09"})
		f.Now = f.Now.Add(time.Minute)
	}},
	{"a check that observes another text", v1alpha1.MachineValidating, func(f *Facts) {
		judged(f, v1alpha1.CheckFail, v1alpha1.Check{Name: "driver", Result: v1alpha1.CheckFail, Observed: "570.1 of the image", Expected: "580.126.09"})
		meta.SetStatusCondition(&f.Machine.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionValidated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed, Message: "driver: expected 580.126.09"})
	}},
	{"a pass that has to last", v1alpha1.MachineValidating, func(f *Facts) { judged(f, v1alpha1.CheckPass); f.Now = f.Now.Add(time.Minute) }},
	{"a verdict that passes", v1alpha1.MachineValidating, func(f *Facts) { judged(f, v1alpha1.CheckPass); f.Machine.Status.Verdict.Admitted = true }},
	{"a token after the join", v1alpha1.MachineValidating, func(f *Facts) { f.Token = &Token{ID: "token-1", Expires: f.Now.Add(time.Minute)} }},
	{"a Node without its labels", v1alpha1.MachineValidating, func(f *Facts) { f.Node.Missing.Labels = []string{"team"} }},
	{"a Secret with the token", v1alpha1.MachineValidating, func(f *Facts) { f.Secret.TokenID = "token-1" }},
	{"a cordon that arrives late", v1alpha1.MachineValidating, func(f *Facts) { f.Node.Unschedulable, f.Node.CordonedByIngot = true, true }},
	{"a cordon that arrives late", v1alpha1.MachineReady, func(f *Facts) { f.Node.Unschedulable, f.Node.CordonedByIngot = true, true }},
	{"nothing to do", v1alpha1.MachineReady, nil},
	{"a Node that was deleted", v1alpha1.MachineReady, func(f *Facts) { f.Node = Node{} }},
	{"a Node that booted", v1alpha1.MachineReady, func(f *Facts) { f.Node.BootID = "another" }},
	{"a host that was taken away", v1alpha1.MachineReady, func(f *Facts) { f.Host.Consumer = ConsumerOther }},
	{"a tenant that does not answer for a while", v1alpha1.MachineReady, unreachable},
	{"another target revision", v1alpha1.MachineReady, func(f *Facts) { f.NodeType.Target = rendered("rev-2/first") }},
	{"another target rendering", v1alpha1.MachineReady, func(f *Facts) { f.NodeType.Target = rendered("rev-1/second") }},
	{"the target revision", v1alpha1.MachineReady, func(f *Facts) { f.NodeType.Target = rendered("rev-1/first") }},
	{"a roll to another revision", v1alpha1.MachineReady, func(f *Facts) { f.NextRevision = revisionOf("rev-2") }},
	{"a roll to another rendering", v1alpha1.MachineReady, func(f *Facts) { f.NextRevision = revisionOf("rev-1/second") }},
	{"a roll that cannot begin", v1alpha1.MachineReady, func(f *Facts) { f.NextRevision = revisionOf("rev-new") }},
	{"a deletion", v1alpha1.MachineReady, func(f *Facts) { f.Machine.Deleting = true }},
	{"one pod", v1alpha1.MachineDraining, func(f *Facts) { f.Node.Unschedulable, f.Node.Pods = true, []string{"team/a"} }},
	{"five pods", v1alpha1.MachineDraining, func(f *Facts) {
		f.Node.Unschedulable, f.Node.Pods = true, []string{"team/a", "team/b", "team/c", "team/d", "team/e"}
	}},
	{"pods that stay", v1alpha1.MachineDraining, func(f *Facts) {
		late(f)
		f.Node.Unschedulable, f.Node.Pods = true, []string{"team/a", "team/b", "team/c", "team/d", "team/e", "team/f", "team/g"}
		f.Node.Budgets = []string{"team/1", "team/2", "team/3", "team/4", "team/5", "team/6"}
	}},
	{"a Node to be cordoned", v1alpha1.MachineDraining, nil},
	{"a roll that is cancelled", v1alpha1.MachineDraining, func(f *Facts) { f.NextRevision = Revision{}; f.Node.Unschedulable, f.Node.CordonedByIngot = true, true }},
	{"a roll that is cancelled before the cordon", v1alpha1.MachineDraining, func(f *Facts) { f.NextRevision = Revision{} }},
	{"a roll whose revision was deleted", v1alpha1.MachineDraining, func(f *Facts) { f.NextRevision = revisionOf("rev-gone") }},
	{"a roll whose tenant does not answer", v1alpha1.MachineDraining, unreachable},
	{"a Node without pods", v1alpha1.MachineDraining, func(f *Facts) { f.Node.Unschedulable = true }},
	{"a power-off to be requested", v1alpha1.MachineDraining, func(f *Facts) { off(f); f.Host.Online = true }},
	{"a power-off that is not confirmed", v1alpha1.MachineDraining, func(f *Facts) { off(f); f.Host.Record.Status.Power.State = "On" }},
	{"a power-off that is late", v1alpha1.MachineDraining, func(f *Facts) {
		off(f)
		late(f)
		f.Host.Record.Status.Power.State, f.Host.Error, f.Host.ErrorReason = "On", "power management error", "BMCUnreachable"
	}},
	{"a Node to be deleted", v1alpha1.MachineDraining, func(f *Facts) { off(f); f.Node = ownNode(f) }},
	{"a host that is off", v1alpha1.MachineDraining, off},
	{"a release with pods", v1alpha1.MachineReleasing, func(f *Facts) { f.Node.Unschedulable, f.Node.Pods = true, []string{"team/a", "team/b"} }},
	{"a release whose pods stay", v1alpha1.MachineReleasing, func(f *Facts) { late(f); f.Node.Unschedulable, f.Node.Pods = true, []string{"team/a", "team/b"} }},
	{"a release whose tenant does not answer", v1alpha1.MachineReleasing, unreachable},
	{"a release whose tenant does not answer for long", v1alpha1.MachineReleasing, func(f *Facts) { unreachable(f); off(f); late(f) }},
	{"a release whose tenant does not answer for long, and its HostRecord says so", v1alpha1.MachineReleasing, func(f *Facts) {
		unreachable(f)
		off(f)
		late(f)
		f.Host.Record.Spec.NodeRemains = &v1alpha1.RemainingNode{Name: "m0"}
	}},
	{"a release that is off", v1alpha1.MachineReleasing, off},
	{"an erase", v1alpha1.MachineReleasing, func(f *Facts) {
		off(f)
		f.Host.ImageURL, f.Host.State = "", metal3.StateDeprovisioning
		f.Host.Record.Status.Wanted = &v1alpha1.WantedAttempt{Number: 4, Operation: "Erase"}
		f.Host.Record.Status.Attempt = &v1alpha1.HostAttempt{Number: 4, Step: "Erasing"}
	}},
	{"an erase that failed", v1alpha1.MachineReleasing, func(f *Facts) {
		off(f)
		late(f)
		f.Host.ImageURL, f.Host.State, f.Host.Error, f.Host.ErrorReason = "", metal3.StateDeprovisioning, "preparation error", "DiskError"
	}},
	{"a paused host that is to be erased", v1alpha1.MachineReleasing, func(f *Facts) {
		off(f)
		f.Host.ImageURL, f.Host.State, f.Host.Paused = "", metal3.StateDeprovisioning, true
	}},
	{"a clean host with a HostRecord", v1alpha1.MachineReleasing, erased},
	{"a clean host with a Secret", v1alpha1.MachineReleasing, func(f *Facts) { erased(f); f.Host.Record.Spec = v1alpha1.HostRecordSpec{} }},
	{"a clean host", v1alpha1.MachineReleasing, func(f *Facts) { erased(f); f.Host.Record.Spec, f.Secret = v1alpha1.HostRecordSpec{}, Secret{} }},
	{"a clean host that is overdue", v1alpha1.MachineReleasing, func(f *Facts) { erased(f); late(f); f.Host.Record.Spec, f.Secret = v1alpha1.HostRecordSpec{}, Secret{} }},
	{"a host in error that looks clean", v1alpha1.MachineReleasing, func(f *Facts) { erased(f); f.Host.Error = "power management error" }},
	{"a host without proof of an erase", v1alpha1.MachineReleasing, func(f *Facts) {
		erased(f)
		f.Host.Record.Status.LastTenant, f.Host.Record.Status.Erased = "team/research", nil
	}},
	{"a late Node of a clean host", v1alpha1.MachineReleasing, func(f *Facts) { erased(f); f.Node = ownNode(f) }},
	{"no host any more", v1alpha1.MachineReleasing, func(f *Facts) { f.Host, f.Node, f.Token = nil, Node{}, nil }},
	{"no host and no tenant that answers", v1alpha1.MachineReleasing, func(f *Facts) { f.Host = nil; unreachable(f) }},
	{"no host, and a Node that may remain", v1alpha1.MachineReleasing, func(f *Facts) { f.Host = nil; unreachable(f); late(f) }},
	{"no host, and a Node that was reported", v1alpha1.MachineReleasing, func(f *Facts) {
		now := metav1.NewMicroTime(f.Now)
		f.Host, f.Machine.Status.NodeRemainsReportedAt = nil, &now
		unreachable(f)
		late(f)
	}},
}

// factsIn are the facts of a Machine that is in the phase, with everything done that comes before the phase's own work.
func factsIn(t *testing.T, phase v1alpha1.MachinePhase) Facts {
	t.Helper()
	from := phase
	if phase == v1alpha1.MachineReleasing {
		from = v1alpha1.MachineReady
	}
	w := worldInPhase(t, from)
	m := w.machines[0]
	if phase == v1alpha1.MachineReleasing {
		w.delete(m)
		w.sync()
		w.reconcile(m)
		w.sync()
	}
	f, _, _ := w.facts(m)
	switch from {
	case v1alpha1.MachineProvisioning: // up to the request to install
		f.Host.Record.Spec = scope{Facts: f}.desiredRecord()
		f.Token, f.Secret = nil, Secret{}
	case v1alpha1.MachineValidating, v1alpha1.MachineReady, v1alpha1.MachineDraining: // without what is left of the join
		f.Token, f.Secret.TokenID, f.Node.Missing = nil, "", NodeMetadata{}
	}
	return f
}

// describe writes what a decision changes, one fact on a line.
func describe(f Facts, d Decision) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	if d.Action != nil {
		line("action %s %s %s", d.Action.Kind, d.Action.TokenID, d.Action.NodeUID)
	}
	if before := f.Machine.Status; d.Status.Phase != before.Phase {
		line("phase %s -> %s", before.Phase, d.Status.Phase)
	}
	line("again: %t, after %s; waits for: %s", d.Requeue, d.RequeueAfter, d.Status.WaitingFor)
	for _, c := range d.Status.Conditions {
		if old := meta.FindStatusCondition(f.Machine.Status.Conditions, c.Type); old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message {
			line("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if id := d.Status.SystemUUID; id != f.Machine.Status.SystemUUID {
		line("system UUID %s", id)
	}
	if p := d.Status.Progress; !reflect.DeepEqual(p, f.Machine.Status.Progress) && p != nil {
		line("progress %+v", *p)
	}
	for _, e := range d.Events {
		line("event %s %s: %s", e.Type, e.Reason, e.Message)
	}
	return b.String()
}

// TestDecisionsAndTheirWords compares what is decided in many situations, and the words that people read then, with
// testdata/decisions.txt.
func TestDecisionsAndTheirWords(t *testing.T) {
	const file = "testdata/decisions.txt"
	var b strings.Builder
	for _, s := range slices.Concat(situations, powerSituations, sameServerSituations) {
		f := factsIn(t, s.phase)
		if s.change != nil {
			s.change(&f)
		}
		fmt.Fprintf(&b, "%s, %s\n%s\n", s.phase, s.name, describe(f, Plan(f)))
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, expected := strings.Split(b.String(), "\n\n"), strings.Split(string(want), "\n\n")
	for i := range max(len(got), len(expected)) {
		if i >= len(got) || i >= len(expected) || got[i] != expected[i] {
			t.Fatalf("%s is stale: write it with -update and read the difference. The first one:\n%s\nwant\n%s", file, got[min(i, len(got)-1)], expected[min(i, len(expected)-1)])
		}
	}
}

// TestAdviceAboutAMachineOfANodePoolDoesNotLoop: a Machine without a host that its NodePool would make again is not told to be deleted. One with a
// host is: its successor gets another host.
func TestAdviceAboutAMachineOfANodePoolDoesNotLoop(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"the NodeType is gone":         func(f *Facts) { f.NodeType.Found = false },
		"the TenantCluster is gone":    func(f *Facts) { f.Tenant.Found = false },
		"the revision is another's":    func(f *Facts) { f.Revision.Problem = "it does not exist: " + f.Machine.RemovalAdvice() },
		"the TenantCluster is leaving": func(f *Facts) { f.Tenant.Deleting = true },
	} {
		for _, pool := range []string{"", "training"} {
			w := worldInPhase(t, v1alpha1.MachinePending)
			f, _, _ := w.facts(w.machines[0])
			f.Machine.NodePool = pool
			change(&f)
			ready := meta.FindStatusCondition(Plan(f).Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || strings.Contains(ready.Message, "delete this Machine") != (pool == "") || strings.Contains(ready.Message, "scale NodePool training down") != (pool != "") {
				t.Errorf("%s, NodePool %q: %+v", name, pool, ready)
			}
			f.Machine.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: "metal", Name: "a"}
			if got := f.Machine.RemovalAdvice(); got != "delete this Machine" {
				t.Errorf("%s, with a host: %s", name, got)
			}
		}
	}
}

// TestAMachineSaysWhatIsWrongWithTheBMC: a Machine names the kind of the error, and not the error, whose text has addresses.
func TestAMachineSaysWhatIsWrongWithTheBMC(t *testing.T) {
	for _, reason := range []string{
		v1alpha1.ReasonBMCUnreachable, v1alpha1.ReasonBMCUnauthorized, v1alpha1.ReasonBMCBusy, v1alpha1.ReasonBMCSessionsExhausted, v1alpha1.ReasonBMCNotFound,
		v1alpha1.ReasonBMCConflict, v1alpha1.ReasonBMCUnsupported, v1alpha1.ReasonBMCInvalid, v1alpha1.ReasonBMCAddressInvalid,
	} {
		w := worldInPhase(t, v1alpha1.MachineProvisioning)
		f, _, _ := w.facts(w.machines[0])
		f.Host.Error, f.Host.ErrorReason = "provisioning error: "+reason+": at 10.0.0.7", reason
		provisioned := meta.FindStatusCondition(Plan(f).Status.Conditions, v1alpha1.ConditionProvisioned)
		if provisioned == nil || provisioned.Reason != reason || !strings.Contains(provisioned.Message, "BMC") || strings.Contains(provisioned.Message, "10.0.0.7") ||
			strings.Contains(provisioned.Message, "its controller reports") {
			t.Errorf("%s: %+v", reason, provisioned)
		}
	}
}
