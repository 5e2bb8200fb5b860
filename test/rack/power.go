package rack

import (
	"context"
	"errors"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

// errPowerCut is why a server's life ends.
var errPowerCut = errors.New("the power is gone")

// outcome is what a server does when what it has booted has ended.
type outcome int

const (
	powerOff outcome = iota
	reboot
	// nextDevice: nothing was booted, the firmware tries the next device.
	nextDevice
)

// Power implements bmc.Machine.
func (s *Server) Power() hardware.PowerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.power
}

// Reset implements bmc.Machine.
func (s *Server) Reset(kind bmc.Reset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	off := s.power == hardware.PowerOff
	switch kind {
	case bmc.ResetOn:
		s.turnOn()
	case bmc.ResetForceOff:
		s.turnOff(false)
	case bmc.ResetForceRestart:
		if off {
			s.turnOn()
		} else {
			s.turnOff(true)
		}
	case bmc.ResetGracefulShutdown:
		s.shutDown(powerOff)
	case bmc.ResetGracefulRestart:
		s.shutDown(reboot)
	case bmc.ResetPushPowerButton:
		if off {
			s.turnOn()
		} else {
			s.shutDown(powerOff)
		}
	}
}

// PowerLoss takes the power away at once, as a pulled plug does; it does not come back by itself.
func (s *Server) PowerLoss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != nil {
		s.log.Info("power loss", "step", string(s.state.Step))
		s.again = false
		s.cut(errPowerCut)
	}
}

// turnOn and the others are called with the lock held.
func (s *Server) turnOn() {
	switch s.power {
	case hardware.PowerOff:
		if s.rack.goWithPower(s.live) {
			s.power = hardware.PowerTurningOn
		}
	case hardware.PowerTurningOff:
		s.again = true
	}
}

func (s *Server) turnOff(again bool) {
	if s.cut == nil && s.power != hardware.PowerTurningOn {
		return
	}
	s.again = again
	s.power = hardware.PowerTurningOff
	if s.cut != nil {
		s.cut(errPowerCut)
	}
}

// shutDown asks the operating system. Firmware, the agent's ramdisk and a hung system do not listen.
func (s *Server) shutDown(then outcome) {
	if s.stop != nil {
		s.stop(then)
	}
}

// live is a server's life from power-on to power-off.
func (s *Server) live(rackCtx context.Context) {
	ctx, cut := context.WithCancelCause(rackCtx)
	defer cut(nil)
	s.mu.Lock()
	s.cut = cut
	if s.power == hardware.PowerTurningOff { // taken back before it began
		cut(errPowerCut)
	}
	s.state = State{Doing: "powering on", Since: s.rack.options.Clock.Now(), Boots: s.state.Boots}
	s.mu.Unlock()
	if s.rack.wait(ctx, s.rack.options.Timing.PowerOn) == nil {
		s.setPower(ctx, hardware.PowerOn)
		for s.boot(ctx) == reboot && ctx.Err() == nil {
			s.log.Info("rebooting")
		}
	}
	lost := errors.Is(context.Cause(ctx), errPowerCut)
	s.mu.Lock()
	s.power, s.cut = hardware.PowerTurningOff, nil
	s.mu.Unlock()
	s.doing("powering off")
	// The sensors see it a while later; when the whole rack stops nobody looks.
	_ = s.rack.wait(rackCtx, s.rack.options.Timing.PowerOff)
	s.log.Info("power off", "cut", lost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.power = hardware.PowerOff
	s.state = State{Doing: "off", Since: s.rack.options.Clock.Now(), Boots: s.state.Boots}
	if s.again {
		s.again = false
		s.turnOn()
	}
}

// setPower is for a change that the power's end has not overtaken.
func (s *Server) setPower(ctx context.Context, state hardware.PowerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.power = state
	}
}
