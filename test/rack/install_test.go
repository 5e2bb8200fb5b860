package rack_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAServerIsInstalledOverItsWiresAndBootsFromItsDisk(t *testing.T) {
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	status := r.install(s, drive("instance-1", "#cloud-config\n"))
	if status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
	eventually(t, "the operating system is up", func() error {
		if s.State().OS != "Debian GNU/Linux 13" {
			return fmt.Errorf("%+v", s.State())
		}
		return nil
	})
	observed, err := r.installer.Observe(t.Context(), r.host(s))
	if err != nil {
		t.Fatal(err)
	}
	if observed.Inventory == nil || observed.Inventory.SystemUUID != s.UUID() {
		t.Errorf("the agent reported %+v", observed.Inventory)
	}
	kept := strings.TrimSuffix(s.DiskPath(), ".disk") + ".var"
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what the system keeps on its disk: %v", err)
	}
	if status := r.erase(s, hardware.EraseMetadata); status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
	if _, err := os.Stat(kept); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the erase left what the system kept: %v", err)
	}
	if power := s.Power(); power != hardware.PowerOff {
		t.Errorf("after the erase the power is %s", power)
	}
	if err := r.bmc(s).SetPower(t.Context(), hardware.TurnOn); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an erased disk does not boot", func() error {
		if state := s.State(); state.Power != hardware.PowerOn || state.Step != "DiskBoot" || state.Activity == "DiskBoot" {
			return errors.New(state.Activity)
		}
		return nil
	})
}
