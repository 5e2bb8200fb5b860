// Package tokens remembers which bootstrap tokens a tenant has, so that its API server is not asked where nothing could follow
// from the answer. It holds no secret.
package tokens

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

// Memory of tokens that were seen, by the uid of their Machine. The zero value is empty.
type Memory struct{ seen sync.Map }

// Saw remembers a token.
func (m *Memory) Saw(machine types.UID, token lifecycle.Token) { m.seen.Store(machine, token) }

// Enough returns a remembered token when that is all that is to be known: the Machine waits for its installation or its
// Node, its claim Secret holds that token, which is neither to be renewed nor, with the phase's deadline passed, to be deleted.
func (m *Memory) Enough(machine *v1alpha1.Machine, secret lifecycle.Secret, renew time.Duration, now time.Time) (lifecycle.Token, bool) {
	s := &machine.Status
	waiting := s.Phase == v1alpha1.MachineProvisioning || s.Phase == v1alpha1.MachineJoining
	if !waiting || machine.DeletionTimestamp != nil {
		m.seen.Delete(machine.UID)
		return lifecycle.Token{}, false
	}
	known, found := m.seen.Load(machine.UID)
	if !found {
		return lifecycle.Token{}, false
	}
	token := known.(lifecycle.Token)
	held := secret.Found && secret.Attempt == s.Attempt && secret.TokenID == token.ID
	calm := token.Expires.Sub(now) > renew && s.Deadline != nil && now.Before(s.Deadline.Time)
	return token, held && calm
}
