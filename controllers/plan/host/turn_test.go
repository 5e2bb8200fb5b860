package host

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAServiceThatIsDownForLongFailsNoAttempt(t *testing.T) {
	for reason, want := range map[string]int32{
		v1alpha1.ReasonInstallerUnreachable: 0, v1alpha1.ReasonInstallerBusy: 0, v1alpha1.ReasonInstallerUnauthorized: 0,
		v1alpha1.ReasonBMCUnreachable: 1, // the hosts of a redfish NodeProvider have a BMC each
	} {
		for name, f := range map[string]Facts{
			"install": facts(metal3.StateProvisioning, off).claimed().attempted(2, hardware.OpInstall, running, ""),
			"erase":   facts(metal3.StateDeprovisioning, off).installed().attempted(3, hardware.OpErase, running, ""),
			"inspect": facts(metal3.StateInspecting, off).attempted(1, hardware.OpInspect, running, ""),
		} {
			writes := 0
			f.Observed.Attempt = nil // nobody tells it
			for range 600 {
				d := Plan(f.with(broken(reason)))
				if !f.Record.Wanted.Deadline.Equal(&d.Record.Wanted.Deadline) {
					writes++
				}
				f = f.next(d, time.Minute)
			}
			if failed := min(f.Record.Failures, 1); failed != want || writes > 200 {
				t.Errorf("%s, %s for ten hours: %d failures and %d other deadlines", name, reason, f.Record.Failures, writes)
			}
			if d := Plan(f.with(broken(reason))); d.Record.Error == nil || d.Record.Error.Reason != reason {
				t.Errorf("%s, %s: the record says %+v", name, reason, d.Record.Error)
			}
		}
	}
}
