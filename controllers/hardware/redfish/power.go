package redfish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// PowerState implements hardware.BMC.
func (b *bmc) PowerState(ctx context.Context) (hardware.PowerState, error) {
	state := hardware.PowerUnknown
	err := b.do(ctx, "read power state", func(c *conn) error {
		s, err := c.system()
		if err != nil {
			return err
		}
		state = powerState(s.PowerState)
		return nil
	})
	return state, err
}

func powerState(reported schemas.PowerState) hardware.PowerState {
	switch reported {
	case schemas.OnPowerState:
		return hardware.PowerOn
	case schemas.OffPowerState:
		return hardware.PowerOff
	case schemas.PoweringOnPowerState:
		return hardware.PowerTurningOn
	case schemas.PoweringOffPowerState:
		return hardware.PowerTurningOff
	}
	return hardware.PowerUnknown
}

// SetPower implements hardware.BMC.
func (b *bmc) SetPower(ctx context.Context, action hardware.PowerAction) error {
	op := "set power " + string(action)
	return b.do(ctx, op, func(c *conn) error {
		s, err := c.system()
		if err != nil {
			return err
		}
		state := powerState(s.PowerState)
		if holds(action, state) {
			return nil
		}
		reset := s.links.Actions.Reset
		if reset.Target == "" {
			return hardware.Errorf(hardware.Unsupported, op, b.endpoint.Address, "the system %s has no reset action", s.ODataID)
		}
		allowed, err := c.allowedResets(s)
		if err != nil {
			return err
		}
		kind := resetType(action, state, allowed)
		if kind == "" {
			return hardware.Errorf(hardware.Unsupported, op, b.endpoint.Address,
				"with power %s it needs a reset type that this BMC does not offer: [%s]", state, strings.Join(allowed, " "))
		}
		// Not gofish's Reset, see the package comment.
		resp, err := c.api.Post(reset.Target, map[string]string{"ResetType": kind})
		if err == nil {
			schemas.DeferredCleanupHTTPResponse(resp)
			return nil
		}
		return c.forgive(err, action)
	})
}

// holds tells whether there is nothing to do for the action.
func holds(action hardware.PowerAction, state hardware.PowerState) bool {
	switch action {
	case hardware.TurnOn:
		return state == hardware.PowerOn || state == hardware.PowerTurningOn
	case hardware.TurnOff:
		return state == hardware.PowerOff
	case hardware.ShutDown:
		return state == hardware.PowerOff || state == hardware.PowerTurningOff
	}
	return false
}

// resetType picks what the BMC offers for the action; empty: nothing fits. PushPowerButton toggles, so it is taken only as
// the last resort, from a state that is certain, and never to cut the power: a running system takes a push as a request.
func resetType(action hardware.PowerAction, state hardware.PowerState, allowed []string) string {
	var wanted []string
	switch action {
	case hardware.TurnOn:
		wanted = []string{"On", "ForceOn"}
		if state == hardware.PowerOff {
			wanted = append(wanted, "PushPowerButton")
		}
	case hardware.TurnOff:
		wanted = []string{"ForceOff"}
	case hardware.ShutDown:
		wanted = []string{"GracefulShutdown"}
		if state == hardware.PowerOn {
			wanted = append(wanted, "PushPowerButton")
		}
	case hardware.Restart:
		// Most BMCs refuse to restart what is off.
		if state == hardware.PowerOff {
			return resetType(hardware.TurnOn, state, allowed)
		}
		wanted = []string{"ForceRestart", "PowerCycle"}
	default:
		return ""
	}
	if len(allowed) == 0 {
		return wanted[0]
	}
	for _, w := range wanted {
		if slices.Contains(allowed, w) {
			return w
		}
	}
	return ""
}

// allowedResets are the reset types the BMC advertises, in the system or in its ActionInfo; none means it does not say.
func (c *conn) allowedResets(s *system) ([]string, error) {
	reset := s.links.Actions.Reset
	if len(reset.Allowable) > 0 || reset.ActionInfo == "" {
		return reset.Allowable, nil
	}
	var info struct {
		Parameters []struct {
			Name            string
			AllowableValues []string
		}
	}
	err := fetch(c.api, reset.ActionInfo, &info)
	if statusOf(err) >= 400 && statusOf(err) != 401 {
		return nil, nil // advertised and not there: as if it had said nothing
	}
	if err != nil {
		return nil, fmt.Errorf("reset action info: %w", err)
	}
	for _, parameter := range info.Parameters {
		if parameter.Name == "ResetType" {
			return parameter.AllowableValues, nil
		}
	}
	return nil, nil
}

// forgive drops the refusal of a power change that holds by now: iDRAC answers 409 and iLO 400 to that.
func (c *conn) forgive(refusal error, action hardware.PowerAction) error {
	status := statusOf(refusal)
	if status != 400 && status != 409 {
		return refusal
	}
	s, err := c.system()
	if err == nil && holds(action, powerState(s.PowerState)) {
		return nil
	}
	return refusal
}
