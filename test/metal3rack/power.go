package metal3rack

import (
	"context"
	"errors"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// PoweredOn implements baremetaloperator.Server. Ironic asks a BMC at its own times, and answers that it does not know the power while the BMC does not say.
func (s *server) PoweredOn(ctx context.Context) (*bool, error) {
	if p := s.Next(baremetaloperator.Looking); p.Problem != "" {
		return nil, errors.New(p.Problem)
	}
	seen, err := s.observe(ctx)
	s.setPowerLost(err != nil)
	if err != nil {
		return nil, nil
	}
	on := seen.Power != hardware.PowerOff
	return &on, nil
}

func (s *server) setPowerLost(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isPowerLost = is
}

// SetPower implements baremetaloperator.Server.
func (s *server) SetPower(ctx context.Context, power baremetaloperator.Power) baremetaloperator.Progress {
	if p := s.Next(baremetaloperator.Powering); !p.Done {
		return p
	}
	if power == baremetaloperator.Reboot {
		return baremetaloperator.Progress{Problem: "the servers of the rack are powered off and on, and not rebooted"}
	}
	desired := hardware.PowerOff
	if power == baremetaloperator.On {
		desired = hardware.PowerOn
	}
	seen, err := s.observe(ctx)
	if err == nil && seen.Power == desired {
		s.setChange(hardware.PowerChange{})
		return baremetaloperator.Progress{Done: true}
	}
	host, hostErr := s.host()
	if err = errors.Join(err, hostErr); err == nil {
		change := hardware.PowerChange{Desired: desired, Graceful: power != baremetaloperator.HardOff}
		err = s.site.installer.SetPower(ctx, host, s.setChange(change))
	}
	if err != nil && !isPassing(err) {
		return baremetaloperator.Progress{Problem: err.Error()}
	}
	return baremetaloperator.Progress{}
}

// setChange returns the change of power with the time at which it was first wanted.
func (s *server) setChange(change hardware.PowerChange) hardware.PowerChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.power.Desired != change.Desired {
		s.power = change
		s.power.Since = time.Now()
	}
	return s.power
}

// Adopt implements baremetaloperator.Server.
func (s *server) Adopt(context.Context) baremetaloperator.Progress {
	return s.Next(baremetaloperator.Adopting)
}

// Prepare implements baremetaloperator.Server. The servers of the rack have nothing to prepare.
func (s *server) Prepare(context.Context) baremetaloperator.Progress {
	return s.Next(baremetaloperator.Preparing)
}

// NeedsServicing implements baremetaloperator.Server.
func (s *server) NeedsServicing(context.Context) bool { return false }

// Service implements baremetaloperator.Server.
func (s *server) Service(context.Context) baremetaloperator.Progress {
	return s.Next(baremetaloperator.Servicing)
}

// Detach implements baremetaloperator.Server.
func (s *server) Detach(context.Context) baremetaloperator.Progress {
	return s.Next(baremetaloperator.Detaching)
}

// Delete implements baremetaloperator.Server.
func (s *server) Delete(context.Context) baremetaloperator.Progress {
	return s.Next(baremetaloperator.Deleting)
}

// Health implements baremetaloperator.Server. The BMCs of the rack report none.
func (s *server) Health(context.Context) baremetaloperator.Health { return "" }

// HasPowerFailure implements baremetaloperator.Server.
func (s *server) HasPowerFailure(context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isPowerLost
}
