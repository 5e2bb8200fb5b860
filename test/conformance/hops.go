package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// hops are the failures that name the hop at which an installation ends, with the features that an Installer needs to tell them.
var hops = map[hardware.Reason]struct {
	faults Faults
	disk   string
	needs  []Feature
}{
	hardware.ReasonPowerOnIgnored:  {Faults{IgnorePowerOn: -1}, "as it was", []Feature{FeatureBMC}},
	hardware.ReasonPowerOffIgnored: {Faults{IgnorePowerOff: -1}, "as it was", []Feature{FeatureBMC}},
	hardware.ReasonNoBootRequest:   {Faults{DeadBootNIC: true}, "as it was", []Feature{FeatureHops}},
	hardware.ReasonAgentMissing:    {Faults{NoAgent: true}, "as it was", nil},
	hardware.ReasonAgentSilent:     {Faults{AgentHangs: true}, "partial", []Feature{FeatureHops}},
	hardware.ReasonDiskError:       {Faults{DiskError: true}, "partial", nil},
	hardware.ReasonDigestMismatch:  {Faults{WrongDigest: true}, "partial", nil},
	hardware.ReasonBootLoop:        {Faults{BootLoop: true}, "partial", []Feature{FeatureHops}},
}

// hopCases are the tests that a failure names its hop, by its own time-out and by a short deadline.
func hopCases() map[string]Case {
	out := map[string]Case{}
	for reason, hop := range hops {
		out["a failure names the hop: "+string(reason)] = Case{Leaves: "Failed, " + string(reason) + "; runs nothing; " + hop.disk, Needs: hop.needs, Run: func(t *testing.T, h Harness) {
			f := newFixture(t, h, hop.faults)
			attempt := f.newAttempt(1)
			f.expectFailed(f.callUntilEnded(attempt, f.install), reason)
			f.expectUnchanged(attempt, f.install)
		}}
		out["a short deadline ends what would fail by "+string(reason)] = Case{Leaves: "Failed, with a reason; runs nothing; " + hop.disk, Needs: hop.needs, Run: func(t *testing.T, h Harness) {
			f := newFixture(t, h, hop.faults)
			status := f.callUntilEnded(hardware.Attempt{Number: 1, Deadline: f.Now().Add(4 * time.Minute)}, f.install)
			if status.State != hardware.AttemptFailed || status.Reason == "" {
				t.Errorf("the attempt is %s: %q, expected a failure with a reason", status.State, status.Reason)
			}
		}}
	}
	return out
}
