package lifecycle

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// awaitHostController waits until the host's controller goes on with its work. The token is kept meanwhile: an installation that
// was requested may still come to its end.
func (s situation) awaitHostController() result {
	reason, message := s.hostTrouble()
	if reason == "" {
		return next
	}
	trouble := wait(notice{condition: v1alpha1.ConditionProvisioned, reason: reason, message: message}).lookAgain(look)
	if s.Token != nil && s.HasImageRequested() {
		return s.keepToken(notice{}).then(trouble)
	}
	return trouble
}

// awaitRevision waits for what the revision refers to when the disk is written already.
func (s situation) awaitRevision() result {
	if !s.guards.hasImageOnDisk(s.Facts) {
		return next
	}
	return wait(notice{condition: v1alpha1.ConditionProvisioned, reason: v1alpha1.ReasonWaitingForNodeType, message: s.Revision.Problem}).lookAgain(look)
}

// awaitSuitability waits, before the installation is requested, until what it stands on can be used.
func (s situation) awaitSuitability() result {
	if s.HasImageRequested() {
		return next
	}
	reason, message := s.guards.unsuited(s.Facts, s.Revision)
	if reason == "" {
		return next
	}
	return wait(notice{condition: v1alpha1.ConditionProvisioned, reason: reason, message: message}).lookAgain(time.Minute)
}

func (s situation) writeHostRecord() result {
	if !s.Provider.Records || s.Revision.Problem != "" {
		return next
	}
	if s.Host.Record == nil {
		return wait(notice{
			condition: v1alpha1.ConditionProvisioned, reason: v1alpha1.ReasonProvisioning,
			message: "host " + s.hostName() + " has no HostRecord yet: its controller makes it",
		}).lookAgain(look)
	}
	want := s.wantedRecord()
	if isSameRecord(s.Host.Record.Spec, want) {
		return next
	}
	return act(Action{Kind: WriteHostRecord, Record: want}, s.installerNotice(nil)).planAgain()
}

func (s situation) wantedRecord() v1alpha1.HostRecordSpec {
	m, image := s.Machine, s.Revision.Image
	return v1alpha1.HostRecordSpec{
		Machine:  &v1alpha1.MachineReference{Namespace: m.Namespace, Name: m.Name, UID: m.UID},
		Tenant:   m.Namespace + "/" + m.Spec.TenantClusterRef.Name,
		Revision: m.Status.Revision, Attempt: m.Status.Attempt, Image: &image, Erase: s.Provider.Erase,
	}
}

func isSameRecord(a, b v1alpha1.HostRecordSpec) bool {
	return a.Machine != nil && *a.Machine == *b.Machine && a.Tenant == b.Tenant && a.Revision == b.Revision &&
		a.Attempt == b.Attempt && a.Image != nil && *a.Image == *b.Image && a.Erase == b.Erase
}

func (s situation) writeClaimSecret() result {
	if s.hasClaimSecret() || !s.Tenant.Reachable || s.Revision.Problem != "" || s.Token == nil {
		return next
	}
	return act(Action{Kind: WriteClaimSecret, TokenID: s.Token.ID}, s.installerNotice(nil)).planAgain()
}

func (s situation) requestInstall() result {
	if s.HasImageRequested() || !s.hasClaimSecret() {
		return next
	}
	return act(Action{Kind: RequestInstall}, s.installerNotice(nil))
}

// awaitInstallation says how far the host's installer is.
func (s situation) awaitInstallation() result {
	wanted, a := s.attempt()
	switch {
	case wanted != nil && wanted.Outcome == v1alpha1.AttemptFailed && wanted.Reason != "":
		return wait(notice{
			condition: v1alpha1.ConditionProvisioned, reason: wanted.Reason,
			message: fmt.Sprintf("host %s: %s at %s", s.hostName(), wanted.Message, wanted.Step),
		})
	case a == nil || !writes[a.Step]:
		r := wait(s.installerNotice(a))
		r.progress = &v1alpha1.Progress{}
		return r
	}
	if left := s.untilWriteTold(a); left > 0 {
		return wait(s.installerNotice(a)).lookAgain(left)
	}
	r := wait(notice{
		v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioning, "the image to be written",
		"host " + s.hostName() + " writes the image" + s.stuckAt(a),
	})
	r.progress = s.progress(a)
	return r
}

// writing is the step at which bytes flow, writes those from the first byte on.
const writing = "Writing"

var writes = map[string]bool{writing: true, "Verifying": true, "Finishing": true}

// quickWrite is how long an image may be written without people being told: each telling is a write of the status, and an image
// that is on the disk by then is told of as installed.
const quickWrite = 30 * time.Second

// untilWriteTold is how long people are not told yet that the image is written; 0: they are, or have been.
func (s situation) untilWriteTold(a *v1alpha1.HostAttempt) time.Duration {
	if s.Machine.Status.Progress != nil || a.StepAt == nil {
		return 0
	}
	return a.StepAt.Add(quickWrite).Sub(s.Now)
}

// installerNotice is the same from the claim until the first byte: a status write is a request, of which a Machine has a
// budget, and each step is in HostRecord.status.
func (s situation) installerNotice(a *v1alpha1.HostAttempt) notice {
	return notice{
		v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioning, "the installer to begin",
		"host " + s.hostName() + " is prepared and boots the installer" + s.stuckAt(a),
	}
}

// stuckAt names the step when that is what people must know: the phase is late.
func (s situation) stuckAt(a *v1alpha1.HostAttempt) string {
	switch {
	case !s.IsOverdue():
		return ""
	case a == nil:
		return ": it is " + s.Host.State
	default:
		return fmt.Sprintf(": attempt %d is at %s", a.Number, a.Step)
	}
}

// attempt is the host's current installation for this Machine, and what is kept of its progress; nil where there is none.
func (s situation) attempt() (*v1alpha1.WantedAttempt, *v1alpha1.HostAttempt) {
	r := s.Host.Record
	if r == nil || r.Status.Wanted == nil || r.Status.Wanted.Operation != "Install" ||
		r.Status.Wanted.MachineUID != s.Machine.UID || r.Status.Wanted.MachineAttempt != s.Machine.Status.Attempt {
		return nil, nil
	}
	return r.Status.Wanted, r.Status.Progress()
}

// progress is the first bytes and then those of every half of the image; HostRecord.status has more.
func (s situation) progress(a *v1alpha1.HostAttempt) *v1alpha1.Progress {
	old, half := s.Machine.Status.Progress, a.TotalBytes/2
	if half == 0 {
		half = 1 << 28
	}
	if old != nil && (a.Step != writing || a.DoneBytes-old.DoneBytes < half && a.DoneBytes >= old.DoneBytes) {
		return old
	}
	return &v1alpha1.Progress{Step: writing, DoneBytes: a.DoneBytes, TotalBytes: a.TotalBytes}
}
