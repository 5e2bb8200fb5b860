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

func TestAHostThatWaitsKeepsItsPlaceWhileTheServiceIsDown(t *testing.T) {
	waiting := facts(metal3.StateProvisioning, off).claimed().with(func(f *Facts) { f.Places = map[hardware.Operation]int{hardware.OpInstall: 4} })
	f := waiting.next(Plan(waiting), time.Hour)
	began := f.Record.Queue
	if began == nil || began.Place != 4 {
		t.Fatalf("queue %+v", began)
	}
	down := f.next(Plan(f.with(broken(v1alpha1.ReasonInstallerUnreachable))), time.Hour)
	if q := down.Record.Queue; q == nil || *q != *began {
		t.Errorf("Ironic is down, and the place is %+v, it was %+v", q, began)
	}
	if q := Plan(down).Record.Queue; q == nil || !q.Since.Equal(&began.Since) {
		t.Errorf("Ironic is back, and the host waits since %+v", q)
	}
	if q := Plan(f.with(broken(v1alpha1.ReasonInstallerMaintenance))).Record.Queue; q != nil {
		t.Errorf("a host with which nothing can be done keeps others waiting: %+v", q)
	}
}
