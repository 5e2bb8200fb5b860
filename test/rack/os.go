package rack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
	"github.com/ingot-dev/ingot/test/rack/machine"
	"github.com/ingot-dev/ingot/test/rack/machineos"
)

// bootFromDisk boots the system on the disk and runs it until it ends.
func (s *Server) bootFromDisk(ctx context.Context) outcome {
	if s.step(ctx, StepDiskBoot) != nil {
		return outcomePowerOff
	}
	disk, err := s.openDisk(ctx, 0)
	if err != nil {
		return s.hang(ctx, "no bootable device", err)
	}
	// Nothing is written through it.
	defer func() { _ = disk.Close() }()
	image, err := machineos.ReadImage(disk, s.inventory.Disks[0].SizeBytes)
	if err != nil {
		return s.hang(ctx, "no bootable device", err)
	}
	drive, err := machineos.ReadConfigDrive(disk, s.inventory.Disks[0].SizeBytes)
	if err != nil {
		s.log.Warn("no config drive", "error", err)
	}
	return s.runSystem(ctx, image, drive)
}

// runSystem runs the installed operating system until it ends.
func (s *Server) runSystem(ctx context.Context, image machineos.Image, drive *machineos.ConfigDrive) outcome {
	if s.rack.wait(ctx, s.rack.options.Timing.OSStart) != nil {
		return outcomePowerOff
	}
	state, err := s.loadState()
	if err != nil {
		s.log.Warn("what the system kept is lost", "error", err)
	}
	system, err := s.bootMachine(image, drive, state)
	if errors.Is(err, machineos.ErrEmergency) {
		return s.hang(ctx, "the operating system did not come up", err)
	}
	if err != nil {
		s.log.Warn("cloud-init", "error", err)
	}
	if err := s.saveState(system.State); err != nil {
		s.log.Error("what the system keeps is lost with the next boot", "error", err)
	}
	s.log.Info("the operating system is up", "os", system.PrettyName(), "hostname", system.Hostname, "ignoredCommands", system.Ignored, "failedCommands", system.Failed)
	running, stop := context.WithCancel(ctx)
	defer stop()
	next := make(chan outcome, 1)
	s.mu.Lock()
	s.state.OS = system.PrettyName()
	s.stop = func(then outcome) {
		select {
		case next <- then:
			stop()
		default: // it is ending already
		}
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop, s.state.OS, s.state.Node = nil, "", ""
	}()
	if s.step(ctx, StepOS) != nil {
		return outcomePowerOff
	}
	s.runNode(running, system)
	<-running.Done() // a system without a Node runs too
	if ctx.Err() != nil {
		return outcomePowerOff
	}
	// What follows notices when the power is lost.
	_ = s.rack.wait(ctx, s.rack.options.Timing.Shutdown)
	return <-next
}

// loadState returns the state that earlier boots of this installation saved, or nil in the first boot.
func (s *Server) loadState() (*machineos.State, error) {
	text, err := os.ReadFile(filepath.Join(s.statePath(), stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state := &machineos.State{}
	if err := json.Unmarshal(text, state); err != nil {
		return nil, err
	}
	return state, nil
}

// saveState saves the state for later boots.
func (s *Server) saveState(state machineos.State) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return s.saveFile(stateFile, text)
}

// saveFile writes a file that survives a reboot.
func (s *Server) saveFile(name string, content []byte) error {
	if err := os.MkdirAll(s.statePath(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.statePath(), name), content, 0o600)
}

// stateFile is the name of the file with the state, in the folder of statePath.
const stateFile = "system.json"

// bootedMachine is the machine of one boot.
type bootedMachine struct {
	*machine.Machine
	// id is the boot ID of the kernel.
	id string
}

// bootMachine boots the image. The system also runs when an error is returned.
func (s *Server) bootMachine(image machineos.Image, drive *machineos.ConfigDrive, state *machineos.State) (bootedMachine, error) {
	s.mu.Lock()
	faults := s.faults
	s.mu.Unlock()
	out := bootedMachine{id: newUUID()}
	present := s.drivenHardware()
	options := machine.Options{
		Image: image, Drive: drive, State: state, Devices: present.PCIDevices, CPU: present.CPUModel, Architecture: present.Architecture, Owner: s.UUID(), Boot: out.id,
		CPUs: present.CPUThreads, MemoryBytes: kubelet.KernelMemory(present.MemoryBytes), NUMANodes: max(present.NUMANodes, 1), Address: s.address(),
		InfoROM: s.infoROM(), RenameProfile: faults.ChangeProfile.apply, InUse: faults.GPUsInUse, Unhealthy: faults.UnhealthyGPUs,
	}
	if faults.RemoveUnit != "" {
		options.Missing = []string{faults.RemoveUnit}
	}
	var err error
	out.Machine, err = machine.Boot(options)
	return out, err
}

// findGPUs returns the GPUs on the buses.
func (s *Server) findGPUs(boot string) ([]*gpu.GPU, error) {
	return gpu.Discover(s.drivenHardware().PCIDevices, s.UUID(), boot, s.infoROM())
}

// infoROM returns the memory that the GPUs keep without power.
func (s *Server) infoROM() gpu.InfoROM {
	return gpu.InfoROM(filepath.Join(s.rack.options.Dir, s.name+".inforom"))
}

// SetMIGMode sets the MIG mode of the GPUs that keep it without power, from the next boot on, as an earlier user of the server may have
// left it.
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
