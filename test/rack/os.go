package rack

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/ingot-dev/ingot/test/rack/machineos"
)

// bootFromDisk starts what is on the disk and stays until that ends.
func (s *Server) bootFromDisk(ctx context.Context) outcome {
	if s.step(ctx, StepDiskBoot) != nil {
		return powerOff
	}
	disk, err := s.openDisk(ctx)
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
	return s.runOS(ctx, image, drive)
}

// runOS is the installed operating system until it ends.
func (s *Server) runOS(ctx context.Context, image machineos.Image, drive *machineos.ConfigDrive) outcome {
	if s.rack.wait(ctx, s.rack.options.Timing.OSStart) != nil {
		return powerOff
	}
	state, err := s.remember()
	if err != nil {
		s.log.Warn("what the system kept is lost", "error", err)
	}
	system, err := s.start(image, drive, state)
	if errors.Is(err, machineos.ErrEmergency) {
		return s.hang(ctx, "the operating system did not come up", err)
	}
	if err != nil {
		s.log.Warn("cloud-init", "error", err)
	}
	if err := s.keep(system.State); err != nil {
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
		return powerOff
	}
	s.runNode(running, system)
	<-running.Done() // also when there is no node
	if ctx.Err() != nil {
		return powerOff
	}
	// The power's end is seen by whatever comes next.
	_ = s.rack.wait(ctx, s.rack.options.Timing.Shutdown)
	return <-next
}

// remember reads what earlier boots of this installation left on the disk; nil on the first.
func (s *Server) remember() (*machineos.State, error) {
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

func (s *Server) keep(state machineos.State) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return s.keepFile(stateFile, text)
}

func (s *Server) keepFile(name string, content []byte) error {
	if err := os.MkdirAll(s.statePath(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.statePath(), name), content, 0o600)
}

// stateFile holds the system's state in the folder of statePath.
const stateFile = "system.json"
