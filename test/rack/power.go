package rack

import (
	"context"
	"errors"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

// errPowerLost is the cause with which the context of a server without power is cancelled.
var errPowerLost = errors.New("the power is gone")

// outcome is what a server does next, when the system that it booted has ended.
type outcome int

const (
	outcomePowerOff outcome = iota
	outcomeReboot
	// outcomeNextDevice means that nothing was booted and the firmware tries the next device.
	outcomeNextDevice
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
		s.powerOn()
	case bmc.ResetForceOff:
		s.powerOff(false)
	case bmc.ResetForceRestart:
		if off {
			s.powerOn()
		} else {
			s.powerOff(true)
		}
	case bmc.ResetGracefulShutdown:
		s.shutDown(outcomePowerOff)
	case bmc.ResetGracefulRestart:
		s.shutDown(outcomeReboot)
	case bmc.ResetPushPowerButton:
		if off {
			s.powerOn()
		} else {
			s.shutDown(outcomePowerOff)
		}
	}
}

// PowerLoss cuts the power at once, as a pulled plug does. It does not come back by itself.
func (s *Server) PowerLoss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutPower != nil {
		s.log.Info("power loss", "step", string(s.state.Step))
		s.restart = false
		s.cutPower(errPowerLost)
	}
}

// powerOn starts the server. It, powerOff and shutDown are called with the lock held.
func (s *Server) powerOn() {
	switch s.power {
	case hardware.PowerOff:
		if s.rack.startServer(s.run) == nil {
			s.power = hardware.PowerTurningOn
		}
	case hardware.PowerTurningOff:
		s.restart = true
	}
}

// powerOff cuts the power, and switches it on again when restart is set.
func (s *Server) powerOff(restart bool) {
	if s.cutPower == nil && s.power != hardware.PowerTurningOn {
		return
	}
	s.restart = restart
	s.power = hardware.PowerTurningOff
	if s.cutPower != nil {
		s.cutPower(errPowerLost)
	}
}

// shutDown asks the operating system to shut down. Firmware, the agent's ramdisk and a hung system do not react.
func (s *Server) shutDown(then outcome) {
	if s.stop != nil {
		s.stop(then)
	}
}

// run runs the server from power-on to power-off.
func (s *Server) run(rackCtx context.Context) {
	ctx, cut := context.WithCancelCause(rackCtx)
	defer cut(nil)
	s.mu.Lock()
	s.cutPower = cut
	if s.power == hardware.PowerTurningOff { // powered off before it began
		cut(errPowerLost)
	}
	s.state = State{Activity: "powering on", Since: s.rack.options.Clock.Now(), Boots: s.state.Boots}
	s.mu.Unlock()
	if s.rack.wait(ctx, s.rack.options.Timing.PowerOn) == nil {
		s.setPower(ctx, hardware.PowerOn)
		for s.boot(ctx) == outcomeReboot && ctx.Err() == nil {
			s.log.Info("rebooting")
		}
	}
	lost := errors.Is(context.Cause(ctx), errPowerLost)
	s.mu.Lock()
	s.power, s.cutPower = hardware.PowerTurningOff, nil
	s.mu.Unlock()
	s.setActivity("powering off")
	// The sensors report it a while later. When the whole rack stops nobody reads them.
	_ = s.rack.wait(rackCtx, s.rack.options.Timing.PowerOff)
	s.log.Info("power off", "cut", lost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.power = hardware.PowerOff
	s.state = State{Activity: "off", Since: s.rack.options.Clock.Now(), Boots: s.state.Boots}
	if s.restart {
		s.restart = false
		s.powerOn()
	}
}

// setPower sets the power state, unless the power was lost meanwhile.
func (s *Server) setPower(ctx context.Context, state hardware.PowerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.power = state
	}
}
