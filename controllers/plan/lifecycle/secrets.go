package lifecycle

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// A host that a baremetal-operator serves has a claim Secret for each attempt, because the operator may read it at any time. The manager may not list
// Secrets, so it must know which there may be. That of an attempt is deleted before the next attempt begins, and the host says which attempt may have one
// before it is written. So there are two at most whose names follow from the host alone.

// SecretAttempts returns the attempts that may have a claim Secret on the host; 0: the name of the Secret has no attempt.
func (h *Host) SecretAttempts() []int64 {
	if h.Record != nil {
		return []int64{0}
	}
	last := h.SecretAttempt
	if i := h.Installation; i != nil {
		last = max(last, i.Attempt)
	}
	if last < 2 {
		return []int64{1}
	}
	return []int64{last, last - 1}
}

// isSecretUnrecorded reports whether the host does not say yet that the attempt may have a claim Secret. It says so with the claim and when it is
// deprovisioned for the next attempt. Without it: an attempt that requested nothing is followed by another one, whose Secret is written; the Machine is
// abandoned, and the release of its host does not find the Secret, which has a token that is good still.
func (s scope) isSecretUnrecorded() bool {
	return !s.mustHaveRecord() && s.Host.SecretAttempt < s.Machine.Status.Attempt
}

// hasEarlierSecret reports whether an attempt that is to be followed by another one has its claim Secret still. Without it: the Machine is rolled to an
// attempt whose tenant does not answer, and that is rolled or deleted in turn. Nobody looks for the Secret of the first one any more.
func (s scope) hasEarlierSecret() bool { return !s.mustHaveRecord() && s.Secret.Found }

func (s scope) planEarlierSecretDeletion() result {
	if !s.hasEarlierSecret() {
		return done
	}
	return actionResult(Action{Kind: DeleteClaimSecret}, report{
		reason: v1alpha1.ReasonDeprovisioning, message: fmt.Sprintf("the documents of attempt %d are being deleted", s.Secret.Attempt),
	}).withRequeue()
}
