package bmc

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// resource returns the resource at the path with its present values.
func (b *BMC) resource(path string, power hardware.PowerState) (document map[string]any, found bool) {
	document, found = b.tree[path]
	switch path {
	case "/redfish":
		return map[string]any{"v1": "/redfish/v1/"}, true
	case PathSystem, pathSecondSystem:
		if found {
			document = b.systemNow(document, power)
		}
	case b.options.Personality.mediaPath():
		if found {
			document = b.mediaNow(document)
		}
	}
	return document, found
}

// systemNow returns the server's ComputerSystem with its power state and boot override.
func (b *BMC) systemNow(static map[string]any, power hardware.PowerState) map[string]any {
	boot := map[string]any{
		"BootSourceOverrideEnabled": b.boot.enabled, "BootSourceOverrideTarget": b.boot.target, "BootSourceOverrideMode": "UEFI",
		"BootSourceOverrideTarget@Redfish.AllowableValues": b.options.Personality.bootTargets(),
	}
	if b.options.Personality.BootMode == BootModeAbsent {
		delete(boot, "BootSourceOverrideMode")
	}
	if b.faults.NullBootTarget {
		boot["BootSourceOverrideTarget"] = nil
	}
	document := maps.Clone(static)
	document["PowerState"], document["Boot"] = power, boot
	return document
}

// mediaNow returns the virtual media slot with the image that is inserted.
func (b *BMC) mediaNow(static map[string]any) map[string]any {
	document := maps.Clone(static)
	document["Inserted"], document["Image"] = b.media != "", nil
	if b.media != "" {
		document["Image"] = b.media
	}
	return document
}

func (b *BMC) etag() string { return fmt.Sprintf(`"%d"`, b.boot.version) }

// isIfMatchAccepted reports whether a change with this If-Match header is accepted.
func (b *BMC) isIfMatchAccepted(ifMatch string) bool {
	switch b.options.Personality.ETag {
	case ETagOptional:
		return ifMatch == "" || ifMatch == "*" || ifMatch == b.etag()
	case ETagRequired, ETagWeak:
		return ifMatch == b.etag()
	}
	return true
}

func (b *BMC) patchSystem(w http.ResponseWriter, r *http.Request, body []byte) {
	var change struct {
		Boot *struct {
			Enabled string  `json:"BootSourceOverrideEnabled"`
			Target  string  `json:"BootSourceOverrideTarget"`
			Mode    *string `json:"BootSourceOverrideMode"`
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isIfMatchAccepted(r.Header.Get("If-Match")) {
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
		return
	}
	switch err := json.Unmarshal(body, &change); {
	case err != nil:
		refuse(w, http.StatusBadRequest, "MalformedJSON", "The request body submitted was malformed JSON.")
	case change.Boot == nil:
		refuse(w, http.StatusBadRequest, "PropertyMissing", "The property Boot is a required property and must be included in the request.")
	case change.Boot.Mode != nil && b.options.Personality.BootMode == BootModeAbsent:
		refuse(w, http.StatusBadRequest, "PropertyUnknown", "The property BootSourceOverrideMode is not in the list of valid properties for the resource.")
	case change.Boot.Mode != nil && b.options.Personality.BootMode == BootModeReadOnly:
		refuse(w, http.StatusBadRequest, "PropertyNotWritable", "The property BootSourceOverrideMode is a read only property.")
	case !slices.Contains(b.options.Personality.bootTargets(), change.Boot.Target) || !slices.Contains([]string{"Once", "Continuous", "Disabled"}, change.Boot.Enabled):
		refuse(w, http.StatusBadRequest, "PropertyValueNotInList", "The value "+change.Boot.Target+" is not in the list of acceptable values.")
	default:
		b.boot.version++
		if !b.faults.NullBootTarget && !b.faults.KeepsBootTarget {
			b.boot.enabled, b.boot.target = change.Boot.Enabled, change.Boot.Target
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// machineResets are the reset types that are passed on under the name that a Machine knows.
var machineResets = map[Reset]Reset{ResetForceOn: ResetOn, ResetPowerCycle: ResetForceRestart}

// powerAfter returns the power state that a reset leads to.
func powerAfter(reset Reset, power hardware.PowerState) hardware.PowerState {
	switch reset {
	case ResetForceOff, ResetGracefulShutdown:
		return hardware.PowerOff
	case ResetPushPowerButton:
		if power != hardware.PowerOff {
			return hardware.PowerOff
		}
	}
	return hardware.PowerOn
}

func isRestart(reset Reset) bool {
	return reset == ResetForceRestart || reset == ResetGracefulRestart || reset == ResetPowerCycle
}

func (b *BMC) reset(w http.ResponseWriter, body []byte) {
	var request struct{ ResetType Reset }
	if json.Unmarshal(body, &request) != nil || !slices.Contains(b.options.Personality.resetTypes(), request.ResetType) {
		refuse(w, http.StatusBadRequest, "ActionParameterNotSupported", "The parameter ResetType for the action ComputerSystem.Reset is not supported.")
		return
	}
	power := b.options.Machine.Power()
	answer := b.nextResetAnswer(request.ResetType, power)
	b.options.Log.Info("reset", "server", b.options.Name, "type", string(request.ResetType), "answer", string(answer))
	switch answer {
	case resetBusy:
		refuse(w, http.StatusServiceUnavailable, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in 30 seconds.")
		return
	case resetConflict:
		refuse(w, http.StatusConflict, "PSU501", "Server is already powered "+string(power)+".")
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
)

// nextResetAnswer returns how the reset is to be answered, and uses up the fault that decides it.
func (b *BMC) nextResetAnswer(reset Reset, power hardware.PowerState) resetAnswer {
	after := powerAfter(reset, power)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case isDue(b.faults.BusyResets):
		b.faults.BusyResets = oneLess(b.faults.BusyResets)
		return resetBusy
	case b.options.Personality.RefusesPresentPower && after == power && !isRestart(reset):
		return resetConflict
	case power == hardware.PowerOff && after == hardware.PowerOn && isDue(b.faults.SilentPowerOn):
		b.faults.SilentPowerOn = oneLess(b.faults.SilentPowerOn)
		return resetIgnored
	case power != hardware.PowerOff && after == hardware.PowerOff && isDue(b.faults.SilentPowerOff):
		b.faults.SilentPowerOff = oneLess(b.faults.SilentPowerOff)
		return resetIgnored
	}
	return resetAccepted
}

func (b *BMC) insertMedia(w http.ResponseWriter, body []byte) {
	var request struct{ Image string }
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case json.Unmarshal(body, &request) != nil || request.Image == "":
		refuse(w, http.StatusBadRequest, "ActionParameterMissing", "The action requires the parameter Image.")
	case b.faults.StaleMedia:
		refuse(w, http.StatusInternalServerError, "IDRAC.2.8.VRM0021", "The Virtual Media image server is already connected.")
	case b.media != "":
		refuse(w, http.StatusConflict, "ResourceInUse", "The media is in use.")
	default:
		b.media = request.Image
		w.WriteHeader(http.StatusNoContent)
	}
}

func (b *BMC) ejectMedia(w http.ResponseWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.media, b.faults.StaleMedia = "", false
	w.WriteHeader(http.StatusNoContent)
}
