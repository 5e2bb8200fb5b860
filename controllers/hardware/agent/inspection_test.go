package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

func TestAnInspectionSaysWhatItCouldNotRead(t *testing.T) {
	r := newRig(t, nil, "raw", hardware.ConfigDrive{})
	r.change(func(s *netboot.Session) {
		s.Work = netboot.Work{Operation: hardware.OpInspect, Inspector: hardware.InspectByAgent}
	})
	config := r.config(r.boot())
	read := config.Inventory
	config.Inventory = func(ctx context.Context) (hardware.Inventory, error) {
		inventory, _ := read(ctx)
		return inventory, errors.New("nvme3 is starting")
	}
	action, err := agent.Run(t.Context(), config)
	s := r.session()
	if err != nil || action != agent.PowerOff || s.Step != hardware.StepFinishing || s.Message != "the inventory is not complete: nvme3 is starting" {
		t.Errorf("%s, %v, the session is at %s: %q", action, err, s.Step, s.Message)
	}
}
