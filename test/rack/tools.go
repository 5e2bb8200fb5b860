package rack

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/nvtool"
)

// booted is an operating system in one of its boots, and the GPUs that it found.
type booted struct {
	*machineos.System
	// id is the kernel's boot id.
	id   string
	gpus []*gpu.GPU
}

// start boots the image. The error tells what went wrong on the way; the system runs all the same.
func (s *Server) start(image machineos.Image, drive *machineos.ConfigDrive, state *machineos.State) (booted, error) {
	s.mu.Lock()
	faults := s.faults
	s.mu.Unlock()
	out := booted{id: newUUID()}
	var err error
	if out.gpus, err = s.findGPUs(out.id); err != nil {
		s.log.Error("no GPU is found", "error", err)
	}
	for i, g := range out.gpus {
		g.InUse, g.Unhealthy = faults.GPUsInUse, i < faults.UnhealthyGPUs
	}
	machine := machineos.Machine{Programs: programs(image, out.gpus, faults.ChangeProfile)}
	if faults.RemoveUnit != "" {
		machine.Missing = []string{faults.RemoveUnit}
	}
	out.System, err = machineos.Boot(image, drive, state, machine)
	return out, err
}

func (s *Server) findGPUs(boot string) ([]*gpu.GPU, error) {
	rom := gpu.InfoROM(filepath.Join(s.rack.options.Dir, s.name+".inforom"))
	return gpu.Discover(s.hardwareOfThisBoot().PCIDevices, s.UUID(), boot, rom)
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

// programs are those of the image that change something on GPUs: nvidia-smi comes with the driver, without which
// nvidia-mig-parted does nothing.
func programs(image machineos.Image, gpus []*gpu.GPU, change ProfileChange) map[string]machineos.Program {
	out := map[string]machineos.Program{"nvidia-smi": nil, "nvidia-mig-parted": nil}
	if driver := image.Software.GPUDriver; driver == nil || !strings.EqualFold(driver.Vendor, "nvidia") {
		return out
	}
	out["nvidia-smi"] = func(arguments []string, _ map[string]string, _ func(string) ([]byte, error)) error {
		return nvtool.SMI(gpus, arguments)
	}
	if slices.Contains(image.Programs, "nvidia-mig-parted") {
		parted := nvtool.MIGParted{GPUs: gpus, Change: change.apply}
		out["nvidia-mig-parted"] = parted.Run
	}
	return out
}

func (c ProfileChange) apply(profile string) string {
	if profile == c.From {
		return c.To
	}
	return profile
}
