package rack_test

import (
	"errors"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
)

func awaitPower(t *testing.T, s *rack.Server, want hardware.PowerState) {
	t.Helper()
	eventually(t, "the power is "+string(want), func() error {
		if power := s.Power(); power != want {
			return errors.New(string(power))
		}
		return nil
	})
}

func TestTheRedfishClientDrivesABMC(t *testing.T) {
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	endpoint := r.endpoint(s)
	endpoint.SystemPath = "" // found beside HGX_Baseboard_0
	b, err := r.client.OpenBMC(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetBootOnce(t.Context(), hardware.BootNetwork); err != nil {
		t.Fatal(err)
	}
	if err := b.SetPower(t.Context(), hardware.TurnOn); err != nil {
		t.Fatal(err)
	}
	awaitPower(t, s, hardware.PowerOn)
	if power, err := b.PowerState(t.Context()); err != nil || power != hardware.PowerOn {
		t.Errorf("power %s: %v", power, err)
	}
	eventually(t, "the override is used up", func() error {
		if source := s.BMC().TakeBoot(); source != "" {
			return errors.New(string(source))
		}
		return nil
	})
	if err := b.SetPower(t.Context(), hardware.Restart); err != nil {
		t.Fatal(err)
	}
	awaitPower(t, s, hardware.PowerTurningOff)
	awaitPower(t, s, hardware.PowerOn)
	if err := b.SetPower(t.Context(), hardware.TurnOff); err != nil {
		t.Fatal(err)
	}
	awaitPower(t, s, hardware.PowerOff)
	if s.BMC().Sessions() != 1 {
		t.Errorf("%d sessions", s.BMC().Sessions())
	}
	if err := r.client.Close(t.Context()); err != nil || s.BMC().Sessions() != 0 {
		t.Errorf("%d sessions after the logout: %v", s.BMC().Sessions(), err)
	}
}

func TestABMCIsKnownByItsOwnCertificateAndCredentials(t *testing.T) {
	r := newRig(t, 2, nil)
	s, other := r.rack.Servers()[0], r.rack.Servers()[1]
	for name, spoil := range map[string]struct {
		change func(*hardware.Endpoint)
		want   hardware.Kind
	}{
		"another's password":   {func(e *hardware.Endpoint) { _, e.Password = other.Credentials() }, hardware.Unauthorized},
		"the system's roots":   {func(e *hardware.Endpoint) { e.CABundle = nil }, hardware.Unreachable},
		"a system that is not": {func(e *hardware.Endpoint) { e.SystemPath = "/redfish/v1/Systems/7" }, hardware.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := r.endpoint(s)
			spoil.change(&endpoint)
			b, err := r.client.OpenBMC(t.Context(), endpoint)
			if err == nil {
				_, err = b.PowerState(t.Context())
			}
			if hardware.KindOf(err) != spoil.want {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestABMCsFaultsAreThoseOfTheField(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		faults bmc.Faults
		call   func(*testing.T, hardware.BMC) error
		want   hardware.Kind
		// after is what the same call gives once counted faults are used up.
		after hardware.Kind
	}{
		"it hangs": {bmc.Faults{Hang: 1}, readPower, hardware.Unreachable, ""},
		"5xx":      {bmc.Faults{ServerErrors: 1}, readPower, hardware.Unreachable, ""},
		"busy":     {bmc.Faults{Busy: 1}, readPower, hardware.Busy, ""},
		"null boot override": {bmc.Faults{NullBootTarget: true}, func(t *testing.T, b hardware.BMC) error {
			return b.SetBootOnce(t.Context(), hardware.BootNetwork)
		}, hardware.Unsupported, hardware.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 1, nil)
			s := r.rack.Servers()[0]
			s.SetFaults(rack.Faults{BMC: test.faults})
			b := r.bmc(s)
			if err := test.call(t, b); hardware.KindOf(err) != test.want {
				t.Errorf("error %v", err)
			}
			// A BMC that was busy is not asked again before the time that it named.
			eventually(t, "afterwards it is "+string(test.after), func() error {
				err := test.call(t, b)
				if hardware.KindOf(err) == test.after {
					return nil
				}
				return errors.Join(errors.New("unexpected answer"), err)
			})
		})
	}
}

func readPower(t *testing.T, b hardware.BMC) error {
	_, err := b.PowerState(t.Context())
	return err
}

func TestCollectionsThatAreLoadedLateAreThereTheNextTime(t *testing.T) {
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	s.SetFaults(rack.Faults{BMC: bmc.Faults{LazyCollections: true}})
	eventually(t, "all that was asked for is loaded", func() error {
		inventory, err := r.bmc(s).Inventory(t.Context())
		if err != nil {
			return err
		}
		if len(inventory.PCIDevices) != 21 || len(inventory.NICs) != 2 {
			return errors.New("incomplete")
		}
		return nil
	})
}

func TestASilentPowerOnIsAcceptedAndDoesNothing(t *testing.T) {
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	s.SetFaults(rack.Faults{BMC: bmc.Faults{SilentPowerOn: 1}})
	b := r.bmc(s)
	for _, want := range []hardware.PowerState{hardware.PowerOff, hardware.PowerTurningOn} {
		if err := b.SetPower(t.Context(), hardware.TurnOn); err != nil {
			t.Fatal(err)
		}
		if power := s.Power(); power != want && power != hardware.PowerOn {
			t.Errorf("the power is %s, expected %s", power, want)
		}
	}
}
