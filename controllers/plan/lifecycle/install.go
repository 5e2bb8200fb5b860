package lifecycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// recheckInterval is how often a Machine is planned again while it waits for something that causes no event.
const recheckInterval = 5 * time.Minute

func (s scope) planFinalizer() result {
	if s.Machine.Finalizer {
		return done
	}
	return actionResult(Action{Kind: AddFinalizer}, report{}).withRequeue()
}

// waitForReferences waits for the NodeType, the revision, the NodeProvider and the TenantCluster.
func (s scope) waitForReferences() result {
	reason, message := s.referenceProblem()
	if reason == "" {
		return done
	}
	return waitResult(report{condition: v1alpha1.ConditionClaimed, reason: reason, message: message}).withRequeueAfter(recheckInterval)
}

func (s scope) waitForPlacement() result {
	if s.Placement.Host.Name == "" && s.Placement.Reason != "" {
		waitingFor := "a host that can be claimed"
		if s.Placement.Reason == v1alpha1.ReasonClaiming || s.Placement.Reason == v1alpha1.ReasonQuotaExceeded {
			waitingFor = "a place in the NodeQuota"
		}
		return waitResult(report{v1alpha1.ConditionClaimed, s.Placement.Reason, waitingFor, s.Placement.Message}).withRequeueAfter(recheckInterval)
	}
	return waitResult(report{condition: v1alpha1.ConditionClaimed, reason: v1alpha1.ReasonClaiming, message: "a host is being chosen"}).withRequeueAfter(recheckInterval)
}

func (s scope) planHostClaim() result {
	return actionResult(Action{Kind: ClaimHost}, report{
		condition: v1alpha1.ConditionClaimed, reason: v1alpha1.ReasonClaiming, message: "host " + s.hostName() + " is being claimed",
	}).withRequeue()
}

// reportLostHost reports that the host is no longer this Machine's. Nothing more is done to the host. The token is deleted.
func (s scope) reportLostHost() result {
	if s.hasHost() {
		return done
	}
	whose := "was deleted"
	if s.Host != nil {
		whose = "is no longer this Machine's"
		if s.Host.Consumer == ConsumerOther {
			whose = "is another's now"
		}
	}
	return s.planToken(report{}).then(waitResult(report{
		condition: v1alpha1.ConditionClaimed, reason: v1alpha1.ReasonHostLost,
		message: fmt.Sprintf("host %s %s; nothing more is done to it: delete this Machine", s.hostName(), whose),
	}))
}

// waitForHealthyHost waits until the host's controller continues. The token and the documents are written meanwhile, because an agent that
// works needs neither the host's controller nor the BMC. Without it: the BMC does not answer for an hour, and neither does anybody answer the
// agent that waits for its config drive.
func (s scope) waitForHealthyHost() result {
	reason, message := s.hostProblem()
	if reason == "" {
		return done
	}
	waiting := waitResult(report{condition: v1alpha1.ConditionProvisioned, reason: reason, message: message}).withRequeueAfter(recheckInterval)
	if s.hasImageRequested() {
		return s.planToken(report{}).then(s.planClaimSecret(report{})).then(s.planChangedRequirements()).then(waiting)
	}
	return waiting
}

// planChangedRequirements writes other requirements into the HostRecord of a host that lacks hardware. Without it: the NodeType requires less now, and
// the host, which waits for that, never learns of it, because a host in error is otherwise waited for.
func (s scope) planChangedRequirements() result {
	if s.Host.ErrorReason != v1alpha1.ReasonHardwareInsufficient || s.Host.Record == nil || !s.NodeType.Found ||
		equality.Semantic.DeepEqual(s.Host.Record.Spec.Hardware, s.NodeType.Hardware) {
		return done
	}
	return s.planHostRecord()
}

// waitForRevision waits, after the disk is written, for what the revision refers to.
func (s scope) waitForRevision() result {
	if !s.guards.hasImageOnDisk(s.Facts) {
		return done
	}
	return waitResult(report{condition: v1alpha1.ConditionProvisioned, reason: v1alpha1.ReasonWaitingForNodeType, message: s.Revision.Problem}).withRequeueAfter(recheckInterval)
}

// waitForTenantSupport waits, before the installation is requested, until the tenant's cluster supports the revision.
func (s scope) waitForTenantSupport() result {
	if s.hasImageRequested() {
		return done
	}
	reason, message := s.guards.revisionProblem(s.Facts, s.Revision)
	if reason == "" {
		return done
	}
	return waitResult(report{condition: v1alpha1.ConditionProvisioned, reason: reason, message: message}).withRequeueAfter(time.Minute)
}

func (s scope) planHostRecord() result {
	if !s.Provider.HasRecords || s.Revision.Problem != "" {
		return done
	}
	if s.Host.Record == nil {
		return waitResult(report{
			condition: v1alpha1.ConditionProvisioned, reason: v1alpha1.ReasonProvisioning,
			message: "host " + s.hostName() + " has no HostRecord yet: its controller makes it",
		}).withRequeueAfter(recheckInterval)
	}
	desired := s.desiredRecord()
	if isEqualRecord(s.Host.Record.Spec, desired) {
		return done
	}
	return actionResult(Action{Kind: WriteHostRecord, Record: desired}, s.installingReport(nil)).withRequeue()
}

func (s scope) desiredRecord() v1alpha1.HostRecordSpec {
	m, image := s.Machine, s.Revision.Image
	return v1alpha1.HostRecordSpec{
		Machine: &v1alpha1.MachineReference{Namespace: m.Namespace, Name: m.Name, UID: m.UID},
		Tenant:  m.Namespace + "/" + m.Spec.TenantClusterRef.Name, TenantClusterUID: s.clusterUID(), TenantUID: s.Tenant.UID,
		Revision: m.Status.Revision, Attempt: m.Status.Attempt, Image: &image, GPUs: s.Revision.GPUs, Hardware: s.NodeType.Hardware, Erase: s.Provider.Erase,
		RemainingNodes: s.Host.Record.Spec.RemainingNodes,
	}
}

// clusterUID returns the uid of the tenant's cluster or, while it is not known, the one that was recorded for this Machine before.
func (s scope) clusterUID() types.UID {
	if r := s.Host.Record; s.Tenant.ClusterUID == "" && r.Spec.Machine != nil && r.Spec.Machine.UID == s.Machine.UID {
		return r.Spec.TenantClusterUID
	}
	return s.Tenant.ClusterUID
}

// planClusterRecord writes into the HostRecord of a node that runs, or onto its metal3 host, which cluster it has joined, where that was not known at
// its installation. The Node of this attempt proves which one it is. Without it: a host that a version before has installed is taken for another tenant's when it is released.
func (s scope) planClusterRecord() result {
	r := s.Host.Record
	if s.Host.LacksClusterUID && s.Tenant.ClusterUID != "" && s.hasNodeOfThisAttempt() {
		return actionResult(Action{Kind: RecordInstallation, Installation: s.installation(v1alpha1.InstallationComplete), ClusterUID: s.Tenant.ClusterUID}, report{}).withRequeue()
	}
	if r == nil || r.Spec.Machine == nil || r.Spec.TenantClusterUID != "" || s.Tenant.ClusterUID == "" || !s.hasNodeOfThisAttempt() {
		return done
	}
	spec := *r.Spec.DeepCopy()
	spec.TenantClusterUID = s.Tenant.ClusterUID
	return actionResult(Action{Kind: WriteHostRecord, Record: spec}, report{}).withRequeue()
}

func isEqualRecord(a, b v1alpha1.HostRecordSpec) bool {
	return a.Machine != nil && *a.Machine == *b.Machine && a.Tenant == b.Tenant && a.TenantClusterUID == b.TenantClusterUID && a.TenantUID == b.TenantUID && a.Revision == b.Revision &&
		a.Attempt == b.Attempt && a.Image != nil && *a.Image == *b.Image && equality.Semantic.DeepEqual(a.GPUs, b.GPUs) && equality.Semantic.DeepEqual(a.Hardware, b.Hardware) && a.Erase == b.Erase
}

// planInstallRequest requests the installation. A baremetal-operator reads the claim Secret when it installs; the agent of a host with a
// HostRecord asks for its documents later. It is requested once more where somebody has enabled the cleaning that a roll had set aside, which sets it aside again.
func (s scope) planInstallRequest() result {
	if s.hasImageRequested() && (s.mustHaveRecord() || !s.Host.CleaningChanged) || s.Revision.Problem != "" || !s.mustHaveRecord() && !s.hasClaimSecret() {
		return done
	}
	return actionResult(Action{Kind: RequestInstall, Installation: s.installation(v1alpha1.InstallationRequested)}, s.installingReport(nil))
}

// installation returns what the host's annotation says of this attempt in the state.
func (s scope) installation(state v1alpha1.InstallationState) *v1alpha1.Installation {
	m := s.Machine
	i := &v1alpha1.Installation{
		Machine: v1alpha1.MachineReference{Namespace: m.Namespace, Name: m.Name, UID: m.UID}, Tenant: m.Namespace + "/" + m.Spec.TenantClusterRef.Name,
		NodeType: m.Spec.NodeTypeRef.Name, State: state, Revision: m.Status.Revision, Rendering: m.Status.Rendering, Attempt: m.Status.Attempt, SystemUUID: m.Status.SystemUUID,
		ProviderID: m.Status.ProviderID,
	}
	if r := s.Host.Record; r != nil {
		i.Disks = r.Status.Disks
		if in := r.Status.Installed; in != nil && state == v1alpha1.InstallationComplete {
			i.RootDisk = in.RootDisk
		}
	}
	return i
}

// planInstallationRecord writes onto the host what is installed there. Without it: the management cluster is restored from a backup of objects,
// which has no status, and nothing tells a server that runs a node from one that was being installed.
func (s scope) planInstallationRecord() result {
	complete := s.installation(v1alpha1.InstallationComplete)
	if s.Host.Installation.IsSameWork(complete) || s.Host.ErrorReason == v1alpha1.ReasonSameServer {
		return done
	}
	return actionResult(Action{Kind: RecordInstallation, Installation: complete}, report{}).withRequeue()
}

// waitForInstallation reports the progress of the host's installer.
func (s scope) waitForInstallation() result {
	wanted, a := s.currentAttempt()
	switch {
	case wanted != nil && wanted.Outcome == v1alpha1.AttemptFailed && wanted.Reason != "":
		return waitResult(report{
			condition: v1alpha1.ConditionProvisioned, reason: wanted.Reason,
			message: fmt.Sprintf("host %s: at %s, %s%s", s.hostName(), wanted.Step, failureKind(wanted.Reason), detailsHint),
		})
	case s.queuePlace() > 0:
		return waitResult(report{
			v1alpha1.ConditionProvisioned, v1alpha1.ReasonQueued, fmt.Sprintf("its turn, place %d", s.queuePlace()),
			fmt.Sprintf("host %s has the place %d in the queue for installations of its NodeProvider, which works on a limited number of hosts at the same time", s.hostName(), s.queuePlace()),
		}).withRequeueAfter(time.Minute)
	case s.isConfigDriveMissing() && !s.canTakeNode():
		return waitResult(report{
			condition: v1alpha1.ConditionProvisioned, reason: v1alpha1.ReasonWaitingForTenant,
			message: "the installer on host " + s.hostName() + " waits for a bootstrap token: " + tenantProblem(s.Facts),
		}).withRequeueAfter(time.Minute)
	case a == nil || !isWriteStep[hardware.Step(a.Step)]:
		r := waitResult(s.installingReport(a)).withRequeueAfter(s.stepDelayLeft(a))
		r.progress = &v1alpha1.Progress{}
		return r
	}
	if left := s.progressDelayLeft(a); left > 0 {
		return waitResult(s.installingReport(a)).withRequeueAfter(left)
	}
	r := waitResult(report{
		v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioning, "the image to be written",
		"host " + s.hostName() + " writes the image" + s.overdueStep(a),
	})
	r.progress = s.nextProgress(a)
	return r
}

// queuePlace returns the place of the host in the queue for installations; 0: it waits in none.
func (s scope) queuePlace() int32 {
	if s.Host.Record == nil || s.Host.Record.Status.Queue == nil || s.Host.Record.Status.Queue.Operation != string(hardware.OpInstall) {
		return 0
	}
	return s.Host.Record.Status.Queue.Place
}

// isWriteStep has the installer's step that writes the image and those after it.
var isWriteStep = map[hardware.Step]bool{hardware.StepWriting: true, hardware.StepVerifying: true, hardware.StepFinishing: true}

// progressDelay is how long an image may be written before the status reports it. Each report is a write of the status, and an image
// that is on the disk by then is reported as installed instead.
const progressDelay = 30 * time.Second

// progressDelayLeft returns the time until the status reports that the image is written. It is 0 when the status reports it now, or does
// already.
func (s scope) progressDelayLeft(a *v1alpha1.HostAttempt) time.Duration {
	if s.Machine.Status.Progress != nil || a.StepAt == nil {
		return 0
	}
	return max(progressDelay-s.Ago(a.StepAt.Time), 0)
}

// installingReport is the same from the claim until the first byte is written, unless a step takes long: each status write is a request, the
// number of requests for a Machine is limited, and HostRecord.status has every step.
func (s scope) installingReport(a *v1alpha1.HostAttempt) report {
	if finding := loadingFinding(a); finding != "" {
		return report{
			v1alpha1.ConditionProvisioned, string(finding), "the installer to be loaded",
			fmt.Sprintf("the server of host %s does not load the installer, %s: attempt %d is at %s%s", s.hostName(), loadingProblems[finding], a.Number, stepTimes(s.Host.Record.Status.Wanted, a), detailsHint),
		}
	}
	if !s.mustHaveRecord() {
		return s.servedInstallingReport()
	}
	return report{
		v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioning, "the installer to begin",
		"host " + s.hostName() + " is prepared and boots the installer" + s.overdueStep(a),
	}
}

// loadingProblems say what the boot service has noticed of a server that loads the installer. Addresses are in the HostRecord.
var loadingProblems = map[v1alpha1.HostFindingReason]string{
	v1alpha1.FindingBootLoadFailed:     "it says that loading it failed",
	v1alpha1.FindingKernelNotRequested: "it has its boot document and asks for no kernel",
	v1alpha1.FindingNoAgentRegistered:  "it has the installer's kernel and no installer registers, and its console says why",
}

// loadingFinding returns why the server does not load the installer; empty: that is not known, or the server is at another step.
func loadingFinding(a *v1alpha1.HostAttempt) v1alpha1.HostFindingReason {
	if a == nil || a.Step != string(hardware.StepLoading) {
		return ""
	}
	for _, f := range a.Findings {
		if loadingProblems[f.Reason] != "" {
			return f.Reason
		}
	}
	return ""
}

// overdueStep returns the end of a message that names the installer's step. It is empty until the step has taken long or the phase is overdue.
func (s scope) overdueStep(a *v1alpha1.HostAttempt) string {
	switch {
	case a != nil && isServerStep[hardware.Step(a.Step)] && s.isStepSlow(a):
		return fmt.Sprintf(": attempt %d is at %s", a.Number, stepTimes(s.Host.Record.Status.Wanted, a))
	case !s.isOverdue():
		return ""
	case a == nil:
		return ": it is " + string(s.Host.State)
	default:
		return fmt.Sprintf(": attempt %d is at %s", a.Number, a.Step)
	}
}

// stepDelay is how long the server may take for a step before the status names the step and its deadline.
const stepDelay = time.Minute

// isServerStep has the steps that the server takes before the agent runs. Their deadlines are fixed when they begin; that of a step of the
// agent moves with its progress, and a status that showed it would be written with every progress.
var isServerStep = map[hardware.Step]bool{
	hardware.StepPoweringOff: true, hardware.StepPoweringOn: true, hardware.StepBooting: true, hardware.StepLoading: true,
}

// isStepSlow reports whether the attempt is at the step for long.
func (s scope) isStepSlow(a *v1alpha1.HostAttempt) bool {
	return a.StepAt != nil && s.Ago(a.StepAt.Time) >= stepDelay
}

// stepDelayLeft returns the time until the step counts as slow. It is 0 when it does already, and for a step of the agent.
func (s scope) stepDelayLeft(a *v1alpha1.HostAttempt) time.Duration {
	if a == nil || a.StepAt == nil || !isServerStep[hardware.Step(a.Step)] {
		return 0
	}
	return max(stepDelay-s.Ago(a.StepAt.Time), 0)
}

// stepTimes describes a step with the time since when the attempt is at it, its own deadline and that of the attempt:
// Booting since 11:00:00Z; this step ends by 11:20:00Z; the attempt ends by 11:45:00Z.
func stepTimes(w *v1alpha1.WantedAttempt, a *v1alpha1.HostAttempt) string {
	text := a.Step
	if a.StepAt == nil || !isServerStep[hardware.Step(a.Step)] {
		return text
	}
	text += " since " + timeOfDay(a.StepAt.Time)
	if a.StepDeadline != nil {
		text += "; this step ends by " + timeOfDay(a.StepDeadline.Time)
	}
	if w.Deadline.IsZero() {
		return text
	}
	return text + "; the attempt ends by " + timeOfDay(w.Deadline.Time)
}

func timeOfDay(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// nextProgress returns the progress for the status. It changes with the first bytes and with every section of the image;
// HostRecord.status is more exact.
func (s scope) nextProgress(a *v1alpha1.HostAttempt) *v1alpha1.Progress {
	old := s.Machine.Status.Progress
	if old != nil && (a.Step != string(hardware.StepWriting) || a.DoneBytes >= old.DoneBytes &&
		ProgressSection(a.DoneBytes, a.TotalBytes) == ProgressSection(old.DoneBytes, a.TotalBytes)) {
		return old
	}
	return &v1alpha1.Progress{Step: string(hardware.StepWriting), DoneBytes: a.DoneBytes, TotalBytes: a.TotalBytes}
}

const (
	// progressSections is the number of sections of an image whose size is known.
	progressSections = 2
	// unknownSizeSection is the size in bytes of the sections of an image whose size is not known.
	unknownSizeSection = 256 << 20
)

// ProgressSection returns the number of the section of the image in which the installer writes: 0 is the first half, 1 the second
// half, 2 the end. A Machine's status shows the written bytes once per section, so the Machine needs no reconcile for a change of a
// HostRecord within a section. Sections are large because thousands of Machines may be installed at once.
func ProgressSection(doneBytes, totalBytes int64) int64 {
	if totalBytes < progressSections {
		return doneBytes / unknownSizeSection
	}
	return doneBytes / (totalBytes / progressSections)
}
