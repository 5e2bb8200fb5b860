package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// needsToken is true in Provisioning while an agent has asked for the documents of the installation under way. For a host without a
// HostRecord nobody tells when they are read, so there the token is made before the installation is requested, and beyond the deadline too while it
// is not: without a token the claim Secret could never be written, and the Machine would be stuck.
func (f Facts) needsToken() bool {
	if !f.hasHost() {
		return false
	}
	switch phase := f.Machine.Status.Phase; {
	case phase == v1alpha1.MachineProvisioning && f.mustHaveRecord():
		return f.isConfigDriveAwaited()
	case phase == v1alpha1.MachineProvisioning:
		return !f.isOverdue() || !f.hasImageRequested()
	case phase == v1alpha1.MachineJoining:
		return !f.isOverdue()
	default:
		return false
	}
}

// isConfigDriveAwaited reports whether the documents of the installation under way are asked for, and that has not failed.
func (f Facts) isConfigDriveAwaited() bool {
	w, a := f.currentAttempt()
	return hasAskedForConfigDrive(w, a) && w.Outcome != v1alpha1.AttemptFailed && (a == nil || a.State != string(hardware.AttemptFailed))
}

// hasAskedForConfigDrive reports whether an agent has asked for the documents of the attempt, or its installer needs them to begin.
func hasAskedForConfigDrive(w *v1alpha1.WantedAttempt, a *v1alpha1.HostAttempt) bool {
	return documentsAskedAt(w, a) != nil
}

// DocumentsAskedAt returns when the documents of the installation under way were first asked for; zero: nobody has.
func (f Facts) DocumentsAskedAt() time.Time {
	if at := documentsAskedAt(f.currentAttempt()); at != nil {
		return at.Time
	}
	return time.Time{}
}

// documentsAskedAt returns when an agent asked for the documents of the attempt, or its installer needed them to begin; nil: that is not known.
func documentsAskedAt(w *v1alpha1.WantedAttempt, a *v1alpha1.HostAttempt) *metav1.MicroTime {
	switch {
	case a != nil && a.ConfigDriveAwaitedAt != nil:
		return a.ConfigDriveAwaitedAt
	case w != nil:
		return w.ConfigDriveAwaitedAt
	}
	return nil
}

// tokenEnd returns the end of the time that the node may take to join: the deadline of Joining. Before that phase it is the latest time at which
// Joining can end when the installation ends in time. Bootstrap tokens expire at whole seconds, so it is rounded up.
func (f Facts) tokenEnd() time.Time {
	end := f.Now
	if d := f.Machine.Status.Deadline; d != nil {
		end = d.Time
	}
	if f.Machine.Status.Phase != v1alpha1.MachineJoining {
		if w, _ := f.currentAttempt(); w != nil {
			end = w.Deadline.Time
		}
		end = end.Add(f.Timeouts.Joining)
	}
	if whole := end.Truncate(time.Second); whole.Before(end) {
		return whole.Add(time.Second)
	}
	return end
}

// newTokenEnd returns when a token expires that is made or renewed now.
func (f Facts) newTokenEnd() time.Time {
	if end := f.tokenEnd(); end.After(f.Now) {
		return end
	}
	return f.Now.Add(f.Timeouts.Joining) // the installation is late, and is waited for still
}

// isTokenLongEnough reports whether the token need not be renewed.
func (f Facts) isTokenLongEnough(t Token) bool {
	return t.Expires.After(f.Now) && !t.Expires.Before(f.tokenEnd())
}

// IsTokenSettled reports whether nothing is to be done about the token: it is needed, the claim Secret has it, and it lasts long enough. The
// tenant's API server need not be asked about it then.
func (f Facts) IsTokenSettled(t Token) bool {
	return f.needsToken() && f.hasClaimSecret() && f.Secret.TokenID == t.ID && f.isTokenLongEnough(t)
}

// CanHaveToken reports whether there may be a token that something follows from. There is none while the Machine's host is prepared and no
// agent has asked for its documents, so the tenant's API server need not be asked. That an agent has asked counts after the attempt has failed
// too. Without it: the token is made, the manager ends before it writes the claim Secret, and the attempt fails; nothing tells of the token any
// more, and it is good until it expires.
func (f Facts) CanHaveToken() bool {
	isAwaited := f.needsToken() || hasAskedForConfigDrive(f.currentAttempt()) || f.Secret.Found && f.Secret.Attempt == f.Machine.Status.Attempt
	return f.Machine.Status.Phase != v1alpha1.MachineProvisioning || !f.hasHost() || isAwaited
}

// planToken creates, renews or deletes the bootstrap token, so that it exists exactly while needsToken holds. The report goes with a
// token that is made or renewed; the steps after a deletion say what the Machine waits for.
func (s scope) planToken(r report) result {
	token := s.Token
	switch {
	case !s.Tenant.Reachable:
		return done
	case token == nil && !s.guards.needsToken(s.Facts):
		return done
	case token == nil:
		return s.planTokenCreation(r)
	case !s.guards.needsToken(s.Facts) || s.isTokenOfEarlierInstallation():
		return s.planTokenDeletion(report{})
	case !s.isTokenLongEnough(*token):
		return actionResult(Action{Kind: RenewToken, TokenID: token.ID, Expires: s.newTokenEnd()}, r).withRequeue()
	}
	return done
}

// isTokenOfEarlierInstallation reports whether the token was handed out with the documents of an installation that has failed. Without it: a
// neighbour registers in place of the server and reads the documents, the attempt fails, and the token that the neighbour has is good again
// for the next one.
func (s scope) isTokenOfEarlierInstallation() bool {
	return s.Secret.Found && s.Secret.TokenID == s.Token.ID && !s.hasClaimSecret()
}

func (s scope) planTokenCreation(r report) result {
	create := Action{Kind: CreateToken, Expires: s.newTokenEnd()}
	switch {
	case s.hasClaimSecret() && s.Secret.TokenID == "":
		// The claim Secret has no token any more, so the node has joined: this Machine was read from an older state.
		return done
	case s.hasClaimSecret():
		// The node has this token in its user data and can use no other.
		create.TokenID = s.Secret.TokenID
	case s.Machine.Status.Phase == v1alpha1.MachineJoining || !s.canTakeNode():
		return done
	}
	return actionResult(create, r).withRequeue()
}

// hasClaimSecret reports whether the claim Secret is that of this attempt and, where the host has a HostRecord, of its present installation.
// A manager before this rule wrote Secrets that do not say of which installation they are. When the image is on the disk, the node was installed
// with such a Secret. Without it: the manager is upgraded while the node boots, the token that it has is deleted, and it can never join. Before
// that an agent that asks gets new documents.
func (f Facts) hasClaimSecret() bool {
	if !f.Secret.Found || f.Secret.Attempt != f.Machine.Status.Attempt {
		return false
	}
	w, _ := f.currentAttempt()
	if w != nil && f.Secret.HostAttempt == 0 {
		return f.Machine.Status.Phase == v1alpha1.MachineJoining || w.Outcome == v1alpha1.AttemptSucceeded
	}
	return w == nil || f.Secret.HostAttempt == w.Number
}

// CanHaveClaimSecret reports whether there may be a claim Secret of the Machine. Where hosts have HostRecords it is written when the installation under way asks
// for it, so it need not be looked for before the first one.
func (f Facts) CanHaveClaimSecret() bool {
	phase := f.Machine.Status.Phase
	isPrepared := phase == v1alpha1.MachineClaiming || phase == v1alpha1.MachineProvisioning
	w, _ := f.currentAttempt()
	return w != nil || !isPrepared || f.Machine.Status.Attempt > 1 || f.Host == nil || !f.mustHaveRecord()
}

// isConfigDriveMissing reports whether an agent waits for documents that are not written.
func (f Facts) isConfigDriveMissing() bool { return f.isConfigDriveAwaited() && !f.hasClaimSecret() }

func (s scope) planInstallToken() result { return s.planToken(s.installingReport(nil)) }

// planJoinToken reports nothing: the steps after it say what the Machine waits for.
func (s scope) planJoinToken() result { return s.planToken(report{}) }

// planTokenDeletionBeforeFence deletes the token before anything else is done to the node. Without it: the Node is deleted while the old machine
// still runs; its kubelet joins again with the token, and the fence finds a new Node again and again.
func (s scope) planTokenDeletionBeforeFence() result {
	return s.planTokenDeletion(report{reason: v1alpha1.ReasonEvicting, message: "the bootstrap token is being deleted"})
}

// planTokenDeletionAfterJoin deletes the token of a node that has joined.
func (s scope) planTokenDeletionAfterJoin() result { return s.planTokenDeletion(report{}) }

// planTokenDeletion deletes the token. One that the tenant's cluster does not remove is tried again after a pause. A release goes on meanwhile, because
// its fence deletes the Node of a server that is off. Without it: a tenant gives the token's Secret a finalizer, and the server of a deleted
// Machine is never even powered off.
func (s scope) planTokenDeletion(r report) result {
	switch {
	case s.Token == nil || !s.Tenant.Reachable:
		return done
	case s.isTokenUndeletable() && (r.reason == "" || s.Machine.Status.Phase == v1alpha1.MachineReleasing):
		return done.withRequeueAfter(hostCheckInterval)
	case s.isTokenUndeletable():
		return waitResult(s.undeletableTokenReport(r.reason)).withRequeueAfter(hostCheckInterval)
	}
	return actionResult(Action{Kind: DeleteToken, TokenID: s.Token.ID}, r).withRequeue()
}

// isTokenUndeletable reports whether the tenant's cluster does not remove the token.
func (s scope) isTokenUndeletable() bool {
	return s.Tenant.Reachable && s.Token != nil && s.Token.Undeletable != ""
}

func (s scope) undeletableTokenReport(reason string) report {
	return report{
		reason: reason, waitingFor: "the tenant's cluster to remove the bootstrap token",
		message: "bootstrap token " + s.Token.ID + " is not removed: " + s.Token.Undeletable,
	}
}

// planClaimSecret writes the documents with the token. They are written while the token is needed only: a token that is being deleted must not
// reach a disk.
func (s scope) planClaimSecret(r report) result {
	isTokenGood := s.Token != nil && s.guards.needsToken(s.Facts) && !s.isTokenOfEarlierInstallation()
	if s.hasClaimSecret() || !s.canTakeNode() || s.Revision.Problem != "" || !isTokenGood {
		return done
	}
	if s.isSecretUnrecorded() {
		return actionResult(Action{Kind: RecordSecretAttempt}, r).withRequeue()
	}
	w, _ := s.currentAttempt()
	write := Action{Kind: WriteClaimSecret, TokenID: s.Token.ID}
	if w != nil {
		write.HostAttempt = w.Number
	}
	return actionResult(write, r).withRequeue()
}

func (s scope) planInstallSecret() result { return s.planClaimSecret(s.installingReport(nil)) }
