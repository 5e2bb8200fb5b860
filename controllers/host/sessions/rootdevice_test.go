package sessions_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/host/sessions"
)

func TestEveryHintOfMetal3IsReadAndTheAgentFollowsFive(t *testing.T) {
	device := sessions.RootDevice(&metal3.RootDeviceHints{
		DeviceName: "/dev/sda", HCTL: "1:0:0:0", Model: "M", Vendor: "V", SerialNumber: "S", MinSizeGigabytes: 2, WWN: "0x1", WWNWithExtension: "0x12", WWNVendorExtension: "0x2",
		Rotational: ptr.To(false),
	})
	want := hardware.RootDevice{
		DeviceName: "/dev/sda", HCTL: "1:0:0:0", Model: "M", Vendor: "V", SerialNumber: "S", MinSizeBytes: 2 << 30, WWN: "0x1", WWNWithExtension: "0x12", WWNVendorExtension: "0x2",
		Rotational: "false",
	}
	if diff := cmp.Diff(want, device); diff != "" {
		t.Errorf("-expected +seen:\n%s", diff)
	}
	if beyond := device.HintsBeyond(hardware.AllHints()); len(beyond) > 0 {
		t.Errorf("beyond all: %v", beyond)
	}
	if beyond := device.HintsBeyond(hardware.AgentHints()); !slices.Equal(beyond, []string{"hctl", "rotational", "vendor", "wwnVendorExtension", "wwnWithExtension"}) {
		t.Errorf("beyond the agent: %v", beyond)
	}
	if device := sessions.RootDevice(nil); device != (hardware.RootDevice{}) {
		t.Errorf("without hints: %+v", device)
	}
}
