package host

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestWhatATPMProvesIsKeptWhenTheAttemptHasSucceeded(t *testing.T) {
	key := strings.Repeat("ab", 32)
	for proof, isKept := range map[hardware.TPMProof]bool{
		hardware.TPMListed: true, hardware.TPMFirstUse: true, hardware.TPMNone: true, hardware.TPMKnown: false, hardware.TPMUnlisted: false, hardware.TPMDiffers: false, hardware.TPMFailed: false,
	} {
		for state, hasSucceeded := range map[hardware.AttemptState]bool{hardware.AttemptRunning: false, hardware.AttemptSucceeded: true, hardware.AttemptFailed: false} {
			f := facts(metal3.StateProvisioning, hardware.PowerOn).claimed().attempted(2, hardware.OpInstall, state, "")
			f.Record.Attempt = &v1alpha1.HostAttempt{Number: 2, TPM: &v1alpha1.HostTPM{Proof: v1alpha1.TPMProof(proof), Key: key, Certificate: "MII"}}
			kept := Plan(f).Record.TPM
			if (kept != nil) != (isKept && hasSucceeded) || kept != nil && *kept != *f.Record.Attempt.TPM {
				t.Errorf("%s, %s: %+v is kept", proof, state, kept)
			}
		}
	}
}

// TestNoKeyIsKeptWhereTwoServersSpoke: either may be a neighbour.
func TestNoKeyIsKeptWhereTwoServersSpoke(t *testing.T) {
	f := facts(metal3.StateProvisioning, hardware.PowerOn).claimed().attempted(2, hardware.OpInstall, hardware.AttemptSucceeded, "")
	f.Record.Attempt = &v1alpha1.HostAttempt{Number: 2, TPM: &v1alpha1.HostTPM{Proof: "FirstUse", Key: strings.Repeat("ab", 32)}, Findings: []v1alpha1.HostFinding{{Reason: v1alpha1.FindingAnotherAgent, Count: 1}}}
	if kept := Plan(f).Record.TPM; kept != nil {
		t.Errorf("%+v is kept", kept)
	}
}

func TestAnEraseKeepsWhatTheTPMProved(t *testing.T) {
	f := facts(metal3.StateDeprovisioning, hardware.PowerOff).attempted(4, hardware.OpErase, hardware.AttemptSucceeded, "")
	f.Observed.Attempt.Channel, f.Observed.Attempt.TPM = hardware.ChannelNetwork, hardware.TPM{Proof: hardware.TPMNone}
	if e := Plan(f).Record.Erased; e == nil || e.Channel != "Network" || e.TPM != "None" {
		t.Errorf("the proof is %+v", e)
	}
}

func TestAnotherTPMIsRefusedUntilTheAnnotationListsIt(t *testing.T) {
	key, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for _, c := range []struct {
		proof        hardware.TPMProof
		seen, listed string
		isTriedAgain bool
	}{
		{hardware.TPMDiffers, key, "", false}, {hardware.TPMDiffers, key, key, true}, {hardware.TPMDiffers, key, strings.ToUpper(key), true}, {hardware.TPMDiffers, key, other, false},
		{hardware.TPMDiffers, key, "none", false}, {hardware.TPMNone, "", "none", true}, {hardware.TPMNone, "", other, false}, {hardware.TPMFailed, "", "none", true}, {hardware.TPMFailed, "", "", false},
	} {
		f := facts(metal3.StateProvisioning, hardware.PowerOff).claimed().attempted(4, hardware.OpInstall, hardware.AttemptFailed, hardware.ReasonTPMDiffers).ended(3)
		f.Record.Attempt = &v1alpha1.HostAttempt{Number: 4, TPM: &v1alpha1.HostTPM{Proof: v1alpha1.TPMProof(c.proof), Key: c.seen}}
		f.Now, f.Host.TPMKey = f.Now.Add(24*time.Hour), c.listed
		if w := Plan(f).Record.Wanted; (w.Number == 5) != c.isTriedAgain {
			t.Errorf("%s %q seen, %q listed: attempt %d", c.proof, c.seen, c.listed, w.Number)
		}
	}
}
