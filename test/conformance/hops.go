package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// atPower is a deadline before the agent is there, and atAgent one while it works.
	atPower, atAgent = 4 * time.Minute, 7 * time.Minute
)

// hop is a failure at one hop of an installation.
type hop struct {
	faults Faults
	// power, runs and disk are how the failure leaves the server.
	power hardware.PowerState
	runs  string
	disk  []string
	needs []Feature
	// short is a deadline that may end the attempt before the hop's own time-out, and other is what it fails by then where that is not the hop.
	short time.Duration
	other hardware.Reason
}

// leaves returns the condition that the failure leaves, with one of the outcomes.
func (h hop) leaves(outcomes ...Outcome) Condition {
	return Condition{outcomes, h.power, h.runs, h.disk, holdsUnproven}
}

// hops are the failures that name the hop at which an installation ends, with the features that an Installer needs to tell them.
var hops = map[hardware.Reason]hop{
	hardware.ReasonPowerOnIgnored:  {Faults{IgnorePowerOn: -1}, hardware.PowerOff, "", []string{DiskForeign}, []Feature{FeatureBMC}, atPower, hardware.ReasonDeadlineExceeded},
	hardware.ReasonPowerOffIgnored: {Faults{IgnorePowerOff: -1}, hardware.PowerOn, DiskForeign, []string{DiskForeign}, []Feature{FeatureBMC}, atPower, hardware.ReasonDeadlineExceeded},
	hardware.ReasonNoBootRequest:   {Faults{DeadBootNIC: true}, hardware.PowerOn, "", []string{DiskForeign}, []Feature{FeatureHops}, atPower, hardware.ReasonDeadlineExceeded},
	hardware.ReasonAgentMissing:    {Faults{NoAgent: true}, hardware.PowerOn, "", []string{DiskForeign}, nil, atPower, hardware.ReasonDeadlineExceeded},
	hardware.ReasonAgentSilent:     {Faults{AgentHangs: true}, hardware.PowerOn, "", []string{DiskPartial}, []Feature{FeatureHops}, atAgent, hardware.ReasonDeadlineExceeded},
	hardware.ReasonDiskError:       {Faults{DiskError: true}, hardware.PowerOn, "", []string{DiskPartial}, nil, atAgent, hardware.ReasonDeadlineExceeded},
	hardware.ReasonDigestMismatch:  {Faults{WrongDigest: true}, hardware.PowerOn, "", []string{DiskPartial}, nil, atAgent, hardware.ReasonDeadlineExceeded},
	hardware.ReasonBootLoop:        {Faults{BootLoop: true}, hardware.PowerOff, "", []string{DiskPartial}, []Feature{FeatureHops}, atAgent, hardware.ReasonAgentSilent},
}

// hopCases are the tests that a failure names its hop, by its own time-out and by a short deadline.
func hopCases() map[string]Case {
	out := map[string]Case{}
	for reason, hop := range hops {
		out["a failure names the hop: "+string(reason)] = Case{Leaves: hop.leaves(failedBy(reason)), Needs: hop.needs, Run: func(t *testing.T, r *rigs) {
			f := newFixture(t, r, hop.faults)
			attempt := f.newAttempt(1)
			f.expectFailed(f.callUntilEnded(attempt, f.install), reason)
			f.expectUnchanged(attempt, f.install)
		}}
		out["a short deadline ends what would fail by "+string(reason)] = Case{
			Leaves: hop.leaves(failedBy(reason), failedBy(hop.other)), Needs: hop.needs, Run: func(t *testing.T, r *rigs) {
				f := newFixture(t, r, hop.faults)
				status := f.callUntilEnded(hardware.Attempt{Number: 1, Deadline: f.Now().Add(hop.short)}, f.install)
				if status.State != hardware.AttemptFailed || status.Reason == "" {
					t.Errorf("the attempt is %s: %q, expected a failure with a reason", status.State, status.Reason)
				}
			}}
	}
	return out
}
