package host

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// keepsDeployment has the Machine request no erase, of an installer that must be told of a release.
func keepsDeployment(f *Facts) { f.Spec.Erase, f.NeedsRelease = v1alpha1.EraseNone, true }

func TestAReleaseWithoutAnEraseEndsTheDeployment(t *testing.T) {
	checkDecisions(t, []decisionCase{
		{name: "an installer that keeps what it has deployed is told of a release without an erase",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().with(keepsDeployment), state: metal3.StateDeprovisioning,
			check: func(t *testing.T, d Decision) {
				begins(noon.Unix()+1, hardware.OpErase)(t, d)
				if w := d.Record.Wanted; w == nil || w.Erase != v1alpha1.EraseNone || d.Record.Erased != nil || d.Record.Installed == nil {
					t.Errorf("record %+v", d.Record)
				}
			}},
		{name: "nothing else is told before the power-off is confirmed",
			facts: facts(metal3.StateDeprovisioning, on).claimed().installed().with(keepsDeployment), state: metal3.StateDeprovisioning, action: ActionSetPower, check: asks(off, true)},
		{name: "a release without an erase waits for its turn too, because it ends a deployment",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().with(keepsDeployment).with(func(f *Facts) { f.Places = map[hardware.Operation]int{hardware.OpErase: 4} }),
			state: metal3.StateDeprovisioning, check: func(t *testing.T, d Decision) {
				if q := d.Record.Queue; q == nil || q.Place != 4 || q.Operation != string(hardware.OpErase) || d.Record.Wanted.IsOpen() {
					t.Errorf("queue %+v, wanted %+v", q, d.Record.Wanted)
				}
			}},
		{name: "it waits for no boot service, because it boots no server",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().with(keepsDeployment).with(func(f *Facts) { f.BootProblem = "something else answers" }),
			state: metal3.StateDeprovisioning, check: begins(noon.Unix()+1, hardware.OpErase)},
		{name: "a host that was released without an erase is available, with proof of the mode None",
			facts: facts(metal3.StateDeprovisioning, off).claimed().installed().attempted(3, hardware.OpErase, succeeded, "").with(keepsDeployment).
				with(func(f *Facts) { f.Record.Wanted.Erase = v1alpha1.EraseNone }), state: metal3.StateAvailable,
			check: func(t *testing.T, d Decision) {
				if e := d.Record.Erased; e == nil || e.Mode != v1alpha1.EraseNone || e.Attempt != 3 || d.Record.Installed != nil {
					t.Errorf("erased %+v, installed %+v", e, d.Record.Installed)
				}
			}},
	})
}
