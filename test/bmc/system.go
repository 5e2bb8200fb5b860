package bmc

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// resource returns the resource at the path with its present values.
func (b *BMC) resource(path string, power hardware.PowerState) (document map[string]any, found bool) {
	if document, found = b.sessionDocument(path); found {
		return document, true
	}
	if document, found = b.certificateDocument(path); found {
		return document, true
	}
	if document, found = b.mediaDocument(path); found {
		return document, true
	}
	document, found = b.tree[path]
	switch path {
	case "/redfish":
		return map[string]any{"v1": "/redfish/v1/"}, true
	case PathSystem, pathSecondSystem:
		if found {
			document = b.systemNow(document, power)
		}
	case b.options.Personality.pathSettings():
		if found {
			document = b.settingsNow(document)
		}
	}
	return document, found
}

// systemNow returns the server's ComputerSystem with its power state and boot override.
func (b *BMC) systemNow(static map[string]any, power hardware.PowerState) map[string]any {
	document := maps.Clone(static)
	document["PowerState"], document["Boot"] = power, b.systemBoot()
	return document
}

// machineResets are the reset types that are passed on under the name that a Machine knows.
var machineResets = map[Reset]Reset{ResetForceOn: ResetOn, ResetPowerCycle: ResetForceRestart, ResetFullPowerCycle: ResetForceRestart, resetPowerOff: ResetForceOff}

// resetPowerOff is a vendor's own name for ForceOff.
const resetPowerOff Reset = "PowerOff"

// powerAfter returns the power state that a reset leads to.
func powerAfter(reset Reset, power hardware.PowerState) hardware.PowerState {
	switch reset {
	case ResetForceOff, ResetGracefulShutdown, resetPowerOff:
		return hardware.PowerOff
	case ResetPushPowerButton:
		if power != hardware.PowerOff {
			return hardware.PowerOff
		}
	}
	return hardware.PowerOn
}

// hasRefusal reports whether the reset is refused because it leads to the present power state.
func (r PowerRules) hasRefusal(reset Reset, power hardware.PowerState) bool {
	isRestart := reset == ResetForceRestart || reset == ResetGracefulRestart || reset == ResetPowerCycle || reset == ResetFullPowerCycle
	return r.PresentState.Status != 0 && !isRestart && powerAfter(reset, power) == power
}

func (b *BMC) reset(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get("If-Match") != "" && b.options.Personality.Wire.RefusesIfMatchOnActions {
		b.refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
		return
	}
	var request struct{ ResetType Reset }
	if json.Unmarshal(body, &request) != nil || !slices.Contains(b.options.Personality.Power.resetTypes(), request.ResetType) {
		b.refuse(w, http.StatusBadRequest, "ActionParameterNotSupported", "The parameter ResetType for the action ComputerSystem.Reset is not supported.")
		return
	}
	power := b.options.Machine.Power()
	answer := b.nextResetAnswer(request.ResetType, power)
	b.options.Log.Info("reset", "server", b.options.Name, "type", string(request.ResetType), "answer", string(answer))
	switch answer {
	case resetBusy:
		b.refuse(w, http.StatusServiceUnavailable, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in 30 seconds.")
		return
	case resetConflict:
		b.refuseAs(w, b.options.Personality.Power.PresentState, "Server is already powered "+string(power)+".")
		return
	case resetSettling:
		b.refuse(w, http.StatusConflict, "ActionParameterValueConflict", "The parameter ResetType conflicts with the present state of the server.")
		return
	case resetAccepted:
		reset, renamed := machineResets[request.ResetType]
		if !renamed {
			reset = request.ResetType
		}
		b.options.Machine.Reset(reset)
	}
	w.WriteHeader(http.StatusNoContent)
}

// resetAnswer is what a BMC does with a reset that it offers.
type resetAnswer string

const (
	resetAccepted resetAnswer = "accepted"
	resetIgnored  resetAnswer = "ignored" // accepted, without effect
	resetBusy     resetAnswer = "busy"
	resetConflict resetAnswer = "conflict" // the server has that power state
	resetSettling resetAnswer = "settling" // the server was powered off a moment ago
)

// nextResetAnswer returns how the reset is to be answered, and uses up the fault that decides it.
func (b *BMC) nextResetAnswer(reset Reset, power hardware.PowerState) resetAnswer {
	after := powerAfter(reset, power)
	changes := (power == hardware.PowerOff) != (after == hardware.PowerOff)
	turnsOn, turnsOff := changes && after == hardware.PowerOn, changes && after == hardware.PowerOff
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case isDue(b.faults.BusyResets):
		b.faults.BusyResets = oneLess(b.faults.BusyResets)
		return resetBusy
	case turnsOn && b.settling > 0:
		b.settling--
		return resetSettling
	case b.options.Personality.Power.hasRefusal(reset, power):
		return resetConflict
	case turnsOn && isDue(b.faults.SilentPowerOn):
		b.faults.SilentPowerOn = oneLess(b.faults.SilentPowerOn)
		return resetIgnored
	case turnsOff && isDue(b.faults.SilentPowerOff):
		b.faults.SilentPowerOff = oneLess(b.faults.SilentPowerOff)
		return resetIgnored
	case turnsOff:
		b.settling = b.options.Personality.Power.SettlingResets
	}
	return resetAccepted
}
