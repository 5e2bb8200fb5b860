package redfish

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// PowerState implements hardware.BMC.
func (b *bmc) PowerState(ctx context.Context) (hardware.PowerState, error) {
	state := hardware.PowerUnknown
	err := b.call(ctx, "read power state", func(c *conn) error {
		s, err := c.serverSystem()
		if err != nil {
			return err
		}
		if state = powerState(s.PowerState); state == hardware.PowerOff {
			c.line().endSoftOff(s.ODataID)
		}
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
	return b.call(ctx, op, func(c *conn) error {
		s, err := c.serverSystem()
		if err != nil {
			return err
		}
		state := powerState(s.PowerState)
		if state == hardware.PowerOff {
			c.line().endSoftOff(s.ODataID)
		}
		if isInEffect(action, state) {
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
		kinds := resetTypes(action, state, allowed)
		if len(kinds) == 0 {
			if action == hardware.TurnOff && state == hardware.PowerTurningOff {
				return nil
			}
			return hardware.Errorf(hardware.Unsupported, op, b.endpoint.Address,
				"with power %s it needs a reset type that this BMC does not offer: [%s]", state, strings.Join(allowed, " "))
		}
		if action == hardware.TurnOff && !isForcedOff(kinds[0]) {
			return c.softOff(op, s, kinds)
		}
		return c.reset(op, s, action, kinds[0])
	})
}

// reset sends a reset. gofish's Reset is not used, see the package comment.
func (c *conn) reset(op string, s *system, action hardware.PowerAction, kind string) error {
	headers := map[string]string{}
	if isRepeatable(kind) {
		headers[headerRepeatable] = "1"
	}
	resp, err := c.api.PostWithHeaders(s.links.Actions.Reset.Target, map[string]string{"ResetType": kind}, headers)
	if err == nil {
		schemas.DeferredCleanupHTTPResponse(resp)
		return nil
	}
	return c.ignoreIfInEffect(op, err, action)
}

// isRepeatable reports whether a reset type leads to the same state when it is sent twice. A second push on the power button would switch
// the server off again.
func isRepeatable(resetType string) bool {
	return resetType == "On" || resetType == "ForceOn" || isForcedOff(resetType)
}

// isInEffect reports whether the power state is already the result of the action.
func isInEffect(action hardware.PowerAction, state hardware.PowerState) bool {
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

// resetTypes returns the reset types for the action from those that the BMC allows, the best one first; none when there is none. PushPowerButton toggles
// the power, so it is used only from a known state and where nothing else leads there.
func resetTypes(action hardware.PowerAction, state hardware.PowerState, allowed []string) []string {
	candidates := resetCandidates(action, state, allowed)
	if len(allowed) == 0 {
		return candidates[:min(1, len(candidates))]
	}
	var offered []string
	for _, candidate := range candidates {
		if kind := firstOffered([]string{candidate}, allowed); kind != "" && !slices.Contains(offered, kind) {
			offered = append(offered, kind)
		}
	}
	return offered
}

// resetCandidates returns the reset types that lead to the result of the action, the best one first.
func resetCandidates(action hardware.PowerAction, state hardware.PowerState, allowed []string) []string {
	var candidates []string
	switch action {
	case hardware.TurnOn:
		candidates = []string{"On", "ForceOn"}
		if state == hardware.PowerOff {
			candidates = append(candidates, pushPowerButton, "PowerCycle", "ForceRestart", "FullPowerCycle")
		}
	case hardware.TurnOff:
		candidates = append([]string{forceOff}, otherOffTypes(allowed)...)
		if state == hardware.PowerOn {
			candidates = append(candidates, pushPowerButton)
		}
	case hardware.ShutDown:
		candidates = []string{gracefulShutdown}
		if state == hardware.PowerOn {
			candidates = append(candidates, pushPowerButton)
		}
	case hardware.Restart:
		// Most BMCs refuse to restart a server that is off.
		if state == hardware.PowerOff {
			return resetCandidates(hardware.TurnOn, state, allowed)
		}
		candidates = []string{"ForceRestart", "PowerCycle", "GracefulRestart", "FullPowerCycle"}
	}
	return candidates
}

// allowedResets returns the reset types that the BMC lists in the system or in its ActionInfo; none when it lists none.
func (c *conn) allowedResets(s *system) ([]string, error) {
	reset := s.links.Actions.Reset
	if len(reset.Allowable) > 0 || reset.ActionInfo == "" {
		return reset.Allowable, nil
	}
	var info struct {
		Parameters []struct {
			Name            string
			AllowableValues looseArg
		}
	}
	err := getJSON(c.api, reset.ActionInfo, &info)
	if isMissing(err) {
		return nil, nil // the ActionInfo does not exist, so the BMC lists none
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

// ignoreIfInEffect returns nil when the action was refused because the server is already in that state: iDRAC responds with 409, iLO with 400.
// When the server is not, the BMC is busy with an earlier change of power: iDRAC10 refuses a power-on soon after a power-off, and iLO
// two changes in a row.
func (c *conn) ignoreIfInEffect(op string, refused error, action hardware.PowerAction) error {
	r := refusalOf(refused)
	if r == nil || r.kind() != hardware.Conflict && r.status != http.StatusBadRequest {
		return refused
	}
	s, err := c.serverSystem()
	if err == nil && isInEffect(action, powerState(s.PowerState)) {
		return nil
	}
	if r.kind() == hardware.Conflict {
		return hardware.Errorf(hardware.Busy, op, c.bmc.endpoint.Address, "%s", r.Error())
	}
	return refused
}
