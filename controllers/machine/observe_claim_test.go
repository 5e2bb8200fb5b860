package machine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

func TestOnlyWhatWasFoundForThatInstallationNotLongAgoIsKnownToBeUnwritten(t *testing.T) {
	now := time.Unix(0, 0)
	of := installation{attempt: 1, hostAttempt: 7, host: "h"}
	written := lifecycle.Secret{Found: true, Attempt: 1, HostAttempt: 7, TokenID: "a"}
	for _, c := range []struct {
		sentence    string
		known       observedClaim
		isUnwritten bool
	}{
		{"no Secret", observedClaim{lifecycle.Secret{}, of, now}, true},
		{"the Secret of the installation before", observedClaim{lifecycle.Secret{Found: true, Attempt: 1, HostAttempt: 6, TokenID: "a"}, of, now}, true},
		{"a Secret without token", observedClaim{lifecycle.Secret{Found: true, Attempt: 1, HostAttempt: 7}, of, now}, true},
		{"the Secret", observedClaim{written, of, now}, false},
		{"no Secret, long ago", observedClaim{lifecycle.Secret{}, of, now.Add(-claimMemory)}, false},
		{"no Secret, when the clock was ahead", observedClaim{lifecycle.Secret{}, of, now.Add(time.Second)}, false},
		{"no Secret for the installation before", observedClaim{lifecycle.Secret{}, installation{attempt: 1, hostAttempt: 6, host: "h"}, now}, false},
	} {
		var cache ClaimCache
		cache.claims.Store(types.UID("m"), c.known)
		if got := cache.IsUnwritten("m", 7, now); got != c.isUnwritten {
			t.Errorf("%s: %v", c.sentence, got)
		}
		if cache.IsUnwritten("another", 7, now) {
			t.Errorf("%s: known of another Machine", c.sentence)
		}
	}
}
