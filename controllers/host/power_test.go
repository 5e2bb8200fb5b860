package host_test

import (
	"context"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
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

// TestAPowerOnThatIsAcceptedAndNeverDoneEndsInATypedError is infra-controller#909, where a reset that was accepted and never done was sent
// again for ever and nobody was told.
func TestAPowerOnThatIsAcceptedAndNeverDoneEndsInATypedError(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	r.await(s, "it is off", hasPower(hardware.PowerOff))
	r.stop()
	r.powerOn = 500 * time.Millisecond
	r.start()

	s.SetFaults(rack.Faults{BMC: bmc.Faults{SilentPowerOn: bmc.All}})
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = true })
	h, record := r.await(s, "the power-on is ignored", func(_ *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool { return record.Status.Error != nil })
	if record.Status.Error.Reason != string(hardware.ReasonPowerOnIgnored) || h.Status.ErrorType != metal3.PowerManagementError && h.Status.ErrorType != "" {
		t.Errorf("error %+v, host %s %q", record.Status.Error, h.Status.ErrorType, h.Status.ErrorMessage)
	}
	if s.Power() != hardware.PowerOff {
		t.Fatalf("the server is %s: the simulated BMC did what it should ignore", s.Power())
	}
	s.SetFaults(rack.Faults{})
	_, record = r.await(s, "it is on without an error", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return h.Status.ErrorType == "" && hasPower(hardware.PowerOn)(h, record)
	})
	if record.Status.Error != nil {
		t.Errorf("on, with the error %+v", record.Status.Error)
	}
}

// hasPower reports whether the BMC confirmed the power state for the newest change of the host.
func hasPower(state hardware.PowerState) func(*metal3.BareMetalHost, *v1alpha1.HostRecord) bool {
	return func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		p := record.Status.Power
		return p != nil && p.State == string(state) && p.ObservedGeneration >= h.Generation
	}
}

// TestABMCThatIsGoneWithThePowerConfirmsNothing is a BMC on a shared port (NC-SI), which goes down with the server.
func TestABMCThatIsGoneWithThePowerConfirmsNothing(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))

	s.SetFaults(rack.Faults{BMC: bmc.Faults{SharedNIC: true}})
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	h, record := r.await(s, "the BMC is reported as unreachable", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		if hasPower(hardware.PowerOff)(h, record) {
			t.Fatal("a BMC that does not answer counts as the confirmed power-off: the disk would be written while nobody knows what runs")
		}
		return record.Status.Error != nil
	})
	if record.Status.Error.Reason != v1alpha1.ReasonBMCUnreachable || record.Status.Power.State != string(hardware.PowerTurningOff) || s.Power() != hardware.PowerOff {
		t.Errorf("error %+v, power %+v, host %q, the server is %s", record.Status.Error, record.Status.Power, h.Status.ErrorMessage, s.Power())
	}
	s.SetFaults(rack.Faults{}) // the link is back, and the server still off
	_, record = r.await(s, "the power-off is confirmed", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return h.Status.ErrorType == "" && hasPower(hardware.PowerOff)(h, record)
	})
	if record.Status.Error != nil || len(record.Status.FailingCalls) > 0 {
		t.Errorf("off, with the error %+v and the calls %+v", record.Status.Error, record.Status.FailingCalls)
	}
}

// TestTheBMCIsAskedAtOnceWhenANodeIsLost shows order: the host would be observed again only after an hour.
func TestTheBMCIsAskedAtOnceWhenANodeIsLost(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	h, _ := r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	m := &v1alpha1.Machine{ObjectMeta: r.meta("node-1"), Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: "h100"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
	}, Status: v1alpha1.MachineStatus{HostRef: &v1alpha1.NamespacedReference{Namespace: h.Namespace, Name: h.Name}, Verdict: &v1alpha1.Verdict{
		Result: v1alpha1.CheckPass, Checks: []v1alpha1.Check{{Name: verdict.CheckReady, Result: v1alpha1.CheckPass, Expected: "True", Observed: "True"}},
	}}}
	server.Create(t, m)
	r.stop()
	r.timeouts.IdleInterval = time.Hour
	r.start()
	// The controller is idle again when it has seen this change and the power that belongs to it.
	r.edit(s, func(h *metal3.BareMetalHost) { h.Spec.Description = "idle" })
	r.await(s, "it is on and idle", hasPower(hardware.PowerOn))
	const unknown = `{"status":{"verdict":{"result":"Wait","checks":[{"name":"node/ready","result":"Wait","expected":"True","observed":"Unknown"}]}}}`
	r.expectBMCAsked(s, m, "the Node turns Unknown", unknown)
	r.expectBMCAsked(s, m, "the Node is deleted", `{"status":{"verdict":null}}`)
}

// expectBMCAsked takes the power away, and expects that the change of the Machine's status has the server powered on again.
func (r *rig) expectBMCAsked(s *rack.Server, m *v1alpha1.Machine, what, change string) {
	r.t.Helper()
	_, before, err := r.get(s)
	if err != nil {
		r.t.Fatal(err)
	}
	s.PowerLoss()
	eventually(r.t, "the power is gone", func() bool { return s.Power() == hardware.PowerOff })
	if _, record, err := r.get(s); err != nil || !record.Status.Power.ObservedAt.Equal(&before.Status.Power.ObservedAt) {
		r.t.Fatalf("before %s the BMC was asked without a reason: power %+v, %v", what, record.Status.Power, err)
	}
	if err := server.Client.Status().Patch(context.Background(), m, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		r.t.Fatal(err)
	}
	r.await(s, what+" and it is powered on again", func(h *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
		return hasPower(hardware.PowerOn)(h, record) && record.Status.Power.ObservedAt.After(before.Status.Power.ObservedAt.Time)
	})
}
