package machine

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

// claimMemory is how long a claim Secret that was read is not read again while its Machine has nothing to do and no agent asks for it. Who deletes one by hand
// after that waits so long.
const claimMemory = 10 * time.Minute

// ClaimCache remembers what claim Secrets said, by the uid of their Machine, which is confirmed before anything is done. It holds no secret. The zero value is
// empty.
type ClaimCache struct{ claims sync.Map }

// observedClaim is what a claim Secret said, and of which installation the Machine was when it was read.
type observedClaim struct {
	lifecycle.Secret
	installation
	at time.Time
}

// installation names what a claim Secret is written for.
type installation struct {
	attempt, hostAttempt int64
	host                 types.UID
}

func installationOf(obs *observation) installation {
	i := installation{attempt: obs.machine.Status.Attempt, host: obs.host.UID}
	if obs.record != nil && obs.record.Status.Wanted != nil {
		i.hostAttempt = obs.record.Status.Wanted.Number
	}
	return i
}

// add remembers what a claim Secret says that was read or written now.
func (c *ClaimCache) add(obs *observation, says lifecycle.Secret) {
	c.claims.Store(obs.machine.ClaimUID(), observedClaim{says, installationOf(obs), obs.facts.Now})
}

func (c *ClaimCache) forget(machine types.UID) { c.claims.Delete(machine) }

// get returns what the claim Secret said when it was read not long ago, for the same installation, and since an agent first asked for it.
func (c *ClaimCache) get(obs *observation) (lifecycle.Secret, bool) {
	found, isFound := c.claims.Load(obs.machine.ClaimUID())
	if !isFound {
		return lifecycle.Secret{}, false
	}
	known, _ := found.(observedClaim)
	return known.Secret, known.installation == installationOf(obs) && known.isFresh(obs.facts.Now) && !known.at.Before(obs.facts.DocumentsAskedAt())
}

// IsUnwritten reports whether it was found not long ago, by this process, that the documents of the Machine's installation with that host attempt are not written.
// An agent that waits for them then costs no request.
func (c *ClaimCache) IsUnwritten(machine types.UID, hostAttempt int64, now time.Time) bool {
	found, isFound := c.claims.Load(machine)
	if !isFound {
		return false
	}
	known, _ := found.(observedClaim)
	isWritten := known.Found && known.HostAttempt == hostAttempt && known.TokenID != ""
	return known.hostAttempt == hostAttempt && !isWritten && known.isFresh(now)
}

// isFresh reports whether a claim Secret was read or written not long ago.
func (c observedClaim) isFresh(now time.Time) bool {
	age := now.Sub(c.at)
	return age >= 0 && age < claimMemory
}

// secretFacts returns what a claim Secret says; nil, or an earlier Machine's, which is overwritten: nothing.
func secretFacts(secret *corev1.Secret, machine types.UID) lifecycle.Secret {
	if secret == nil || secret.Labels[v1alpha1.LabelMachine] != string(machine) {
		return lifecycle.Secret{}
	}
	claim := documents.ClaimOf(secret)
	return lifecycle.Secret{Found: true, Attempt: claim.Attempt, HostAttempt: claim.HostAttempt, TokenID: claim.TokenID}
}

// needsClaimSecret reports whether the action is carried out by what the claim Secret says.
func needsClaimSecret(a *lifecycle.Action) bool {
	if a == nil {
		return false
	}
	switch a.Kind {
	case lifecycle.WriteClaimSecret, lifecycle.ScrubSecret, lifecycle.DeleteClaimSecret, lifecycle.CreateToken, lifecycle.DeleteToken, lifecycle.RequestInstall:
		return true
	}
	return false
}
