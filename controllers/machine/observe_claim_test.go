package machine

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
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

// TestAnAgentThatAsksForDocumentsHasTheClaimSecretReadAgain looks at what is remembered from before and after the agent first asked.
func TestAnAgentThatAsksForDocumentsHasTheClaimSecretReadAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	asked := metav1.NewMicroTime(now.Add(-time.Second))
	wanted := &v1alpha1.WantedAttempt{Number: 7, Operation: string(hardware.OpInstall), MachineUID: "m", MachineAttempt: 1, ConfigDriveAwaitedAt: &asked}
	record := &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Wanted: wanted}}
	obs := &observation{
		machine: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "m"}, Status: v1alpha1.MachineStatus{Attempt: 1}},
		host:    &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{UID: "h"}}, record: record,
		facts: lifecycle.Facts{Clock: watched.Clock{Now: now}, Host: &lifecycle.Host{Record: &lifecycle.HostRecord{Status: record.Status}}},
	}
	obs.facts.Machine = machineFacts(obs.machine)
	for age, isKnown := range map[time.Duration]bool{0: true, time.Second: true, 2 * time.Second: false} {
		var cache ClaimCache
		cache.claims.Store(types.UID("m"), observedClaim{lifecycle.Secret{Found: true}, installationOf(obs), now.Add(-age)})
		if _, got := cache.get(obs); got != isKnown {
			t.Errorf("what was read %v ago, of which an agent asked a second ago: known %v, want %v", age, got, isKnown)
		}
	}
}
