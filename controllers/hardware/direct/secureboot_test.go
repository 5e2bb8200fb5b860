package direct_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/conformance"
)

func TestAServerWhoseFirmwareWouldRefuseTheAgentIsNotPoweredOn(t *testing.T) {
	for name, ways := range map[string][]hardware.BootSource{"network": nil, "media": {hardware.BootMedia, hardware.BootNetwork}} {
		t.Run(name, func(t *testing.T) {
			r := newRigWith(t, conformance.Faults{}, bmc.Personality{SecureBoot: map[string]any{"SecureBootEnable": true, "SecureBootMode": "UserMode"}})
			r.ways = ways
			var refused error
			deadline := r.Now().Add(time.Hour)
			wasOff := false
			for range 60 {
				err := r.installer.Install(t.Context(), r.Host(), hardware.Attempt{Number: 1, Deadline: deadline}, conformanceImage)
				if err != nil {
					refused = err
				}
				if wasOff && r.Power() == hardware.PowerOn {
					t.Fatal("the server was powered on")
				}
				wasOff = wasOff || r.Power() == hardware.PowerOff
				r.Advance(10 * time.Second)
			}
			var typed *hardware.Error
			if !errors.As(refused, &typed) || typed.Reason != hardware.ReasonSecureBootOn {
				t.Fatalf("got %v, want a refusal with the reason %s", refused, hardware.ReasonSecureBootOn)
			}
			for _, said := range []string{"Secure Boot is on", "SecureBootEnable of " + bmc.PathSystem + "/SecureBoot", "spec.redfish.netboot.secureBoot"} {
				if !strings.Contains(refused.Error(), said) {
					t.Errorf("%q does not say %q", refused, said)
				}
			}
			if r.bmc.Media() != "" {
				t.Error("a medium is inserted, and its URL is a secret that nobody needs")
			}
		})
	}
}

func TestSecureBootIsNoObstacleWhereItIsOffOrTheBootIsSigned(t *testing.T) {
	for name, c := range map[string]struct {
		resource map[string]any
		isSigned bool
	}{
		"off":    {map[string]any{"SecureBootEnable": false, "SecureBootCurrentBoot": "Enabled"}, false},
		"signed": {map[string]any{"SecureBootEnable": true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigWith(t, conformance.Faults{}, bmc.Personality{SecureBoot: c.resource})
			deadline := r.Now().Add(time.Hour)
			host := r.Host()
			host.HasSignedBoot = c.isSigned
			for range 200 {
				if err := r.installer.Install(t.Context(), host, hardware.Attempt{Number: 1, Deadline: deadline}, conformanceImage); err != nil {
					t.Log(err)
				}
				if r.session().Agent.KeyDigest != "" {
					return
				}
				r.Advance(10 * time.Second)
			}
			t.Fatalf("no agent has registered: %+v", r.session())
		})
	}
}
