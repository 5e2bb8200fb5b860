package rack

import (
	"fmt"
	"path/filepath"

	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/machine"
	"github.com/ingot-dev/ingot/test/rack/machineos"
)

// booted is a machine in one of its boots.
type booted struct {
	*machine.Machine
	// id is the kernel's boot id.
	id string
}

// start boots the image. The error tells what went wrong on the way; the system runs all the same.
func (s *Server) start(image machineos.Image, drive *machineos.ConfigDrive, state *machineos.State) (booted, error) {
	s.mu.Lock()
	faults := s.faults
	s.mu.Unlock()
	out := booted{id: newUUID()}
	present := s.hardwareOfThisBoot()
	options := machine.Options{
		Image: image, Drive: drive, State: state, Devices: present.PCIDevices, CPU: present.CPUModel, Architecture: present.Architecture, Owner: s.UUID(), Boot: out.id,
		InfoROM: s.infoROM(), Change: faults.ChangeProfile.apply, InUse: faults.GPUsInUse, Unhealthy: faults.UnhealthyGPUs,
	}
	if faults.RemoveUnit != "" {
		options.Missing = []string{faults.RemoveUnit}
	}
	var err error
	out.Machine, err = machine.Boot(options)
	return out, err
}

func (s *Server) findGPUs(boot string) ([]*gpu.GPU, error) {
	return gpu.Discover(s.hardwareOfThisBoot().PCIDevices, s.UUID(), boot, s.infoROM())
}

// infoROM is what the GPUs keep without power.
func (s *Server) infoROM() gpu.InfoROM {
	return gpu.InfoROM(filepath.Join(s.rack.options.Dir, s.name+".inforom"))
}

// SetMIGMode leaves the GPUs as whoever had the server before may have left them: those that keep their MIG mode have it on
// or off from the next boot on.
func (s *Server) SetMIGMode(on bool) error {
	gpus, err := s.findGPUs("")
	for _, g := range gpus {
		if err == nil {
			err = g.SetMIG(on)
		}
	}
	if err != nil {
		return fmt.Errorf("server %s: %w", s.name, err)
	}
	return nil
}

func (c ProfileChange) apply(profile string) string {
	if profile == c.From {
		return c.To
	}
	return profile
}
