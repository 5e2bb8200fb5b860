package host_test

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
)

func TestAPowerOffThatIsIgnoredIsOneErrorUntilThePowerIsOff(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	r.stop()
	r.powerOff = 500 * time.Millisecond
	r.start()

	s.SetFaults(rack.Faults{BMC: bmc.Faults{SilentPowerOff: 1 << 20}})
	r.edit(s, func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{metal3.RebootAnnotationPrefix + "/test": `{"mode": "hard"}`}
	})
	h, _ := r.await(s, "the power-off is ignored", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Error != nil && h.Status.ErrorType == metal3.PowerManagementError
	})
	r.writes.reset()
	time.Sleep(10 * quick().RetryBase) // several looks at it
	count, log := r.writes.counted()
	_, record, err := r.get(s)
	if err != nil || record.Status.Error.Reason != string(hardware.ReasonPowerOffIgnored) || h.Status.ErrorMessage != "PowerOffIgnored: "+record.Status.Error.Message || h.Status.ErrorCount != 1 {
		t.Errorf("error %+v, host %q counted %d, %v", record.Status.Error, h.Status.ErrorMessage, h.Status.ErrorCount, err)
	}
	if len(count) > 0 {
		t.Errorf("the same error is written again and again: %v", log)
	}

	s.SetFaults(rack.Faults{})
	_, record = r.await(s, "it is off", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return record.Status.Power.State == string(hardware.PowerOff) && h.Status.ErrorType == ""
	})
	if record.Status.Error != nil {
		t.Errorf("off, with the error %+v", record.Status.Error)
	}
}
