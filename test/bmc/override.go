package bmc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// bootOverride is a boot source override with the number of its changes, from which its ETag is made.
type bootOverride struct {
	enabled, target, mode string
	// uri is HttpBootUri; empty: null.
	uri     string
	version int
}

// newOverride returns the override that a BMC starts with.
func newOverride(rules BootRules) bootOverride {
	o := bootOverride{enabled: "Disabled", target: "None", mode: "UEFI"}
	if rules.AlwaysContinuous {
		o.enabled, o.target = "Continuous", "Hdd"
	}
	for _, member := range []struct{ initial, into *string }{
		{&rules.Initial.Enabled, &o.enabled}, {&rules.Initial.Target, &o.target}, {&rules.Initial.Mode, &o.mode},
	} {
		if *member.initial != "" {
			*member.into = *member.initial
		}
	}
	return o
}

// canTakeOverride reports whether the override is changed at the settings object and not at the system.
func (r *SettingsRules) canTakeOverride() bool { return r != nil && !r.RefusesOverride }

// pathSettings is the path of the settings object, or "".
func (p Personality) pathSettings() string {
	if p.Boot.Settings == nil {
		return ""
	}
	return PathSystem + "/" + p.Boot.Settings.Name
}

// override returns the override that a client changes. It is called with the lock held.
func (b *BMC) override() *bootOverride {
	if b.options.Personality.Boot.Settings.canTakeOverride() {
		return &b.future
	}
	return &b.boot
}

// Override returns the boot override as it was set: whether it is enabled, and its target.
func (b *BMC) Override() (enabled, target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.override().enabled, b.override().target
}

// TakeBoot returns the source that the boot override names, and disables an override that is set for one boot. It returns ""
// when none is set: the firmware then boots in its own order. It does so too with an override for a BIOS boot, because the
// simulated servers have UEFI boot loaders only.
func (b *BMC) TakeBoot() hardware.BootSource {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countBoot()
	set := b.override()
	taken := *set
	if set.enabled == "Once" {
		set.enabled, set.target = "Disabled", "None"
		set.version++
	}
	if taken.target == "UefiHttp" && b.options.Personality.Boot.HTTPBootURI == URITaken {
		set.uri = ""
	}
	b.boot, b.bootedURI, b.bootedImage, b.formerReads = *set, "", "", 0
	rules := b.options.Personality.Boot
	if isOnly := rules.Order != nil && rules.Order.Only; isOnly || taken.enabled == "Disabled" || taken.mode == "Legacy" && rules.Mode != BootModeAbsent {
		return b.takeOrder()
	}
	return b.takeTarget(taken)
}

// takeTarget returns the source that the target of an override is.
func (b *BMC) takeTarget(taken bootOverride) hardware.BootSource {
	switch taken.target {
	case "UefiHttp":
		if b.bootedURI = taken.uri; taken.uri != "" {
			return hardware.BootPinned
		}
		return hardware.BootNetwork
	case "Pxe":
		return hardware.BootNetwork
	case "Hdd":
		return hardware.BootDisk
	case "Cd", "Usb", "UsbCd", "CD/DVD":
		b.takeMedium()
		return hardware.BootMedia
	}
	return ""
}

// bootDocument returns the member Boot of a system, or of a settings object with the override.
func (b *BMC) bootDocument(o bootOverride, lists bool) map[string]any {
	rules := b.options.Personality.Boot
	target := any(o.target)
	switch {
	case b.faults.NullBootTarget:
		target = nil
	case o.target == "Pxe" && o.mode == "UEFI" && o.enabled != "Disabled" && rules.PxeReadsAs != "":
		target = rules.PxeReadsAs
	}
	boot := map[string]any{"BootSourceOverrideEnabled": o.enabled, "BootSourceOverrideTarget": target}
	if rules.Mode != BootModeAbsent {
		boot["BootSourceOverrideMode"] = o.mode
	}
	if rules.HTTPBootURI != "" {
		if boot[memberHTTPURI] = nil; o.uri != "" {
			boot[memberHTTPURI] = o.uri
		}
	}
	if rules.Certificates != "" {
		boot["Certificates"] = ref(pathCertificates)
	}
	if lists {
		b.addBootLists(boot)
	}
	return boot
}

// addBootLists adds the values that the BMC lists as allowed.
func (b *BMC) addBootLists(boot map[string]any) {
	rules := b.options.Personality.Boot
	boot["BootSourceOverrideTarget@Redfish.AllowableValues"] = rules.targets()
	if len(rules.Enabled) > 0 {
		boot["BootSourceOverrideEnabled@Redfish.AllowableValues"] = rules.Enabled
	}
	if len(rules.Modes) > 0 {
		boot["BootSourceOverrideMode@Redfish.AllowableValues"] = rules.Modes
	}
}

// shown returns the override as it is shown, which may be the one before the last change.
func (b *BMC) shown(o bootOverride) bootOverride {
	if b.formerReads > 0 {
		return b.former
	}
	return o
}

// systemBoot returns the member Boot of the system. What may be written is listed there unless the settings object lists it.
func (b *BMC) systemBoot() map[string]any {
	if b.isBootUnloaded() {
		return map[string]any{}
	}
	settings := b.options.Personality.Boot.Settings
	boot := b.bootDocument(b.shown(b.boot), settings == nil || settings.Members == SettingsMode)
	b.addOrder(boot, false)
	return boot
}

// settingsNow returns the settings object with its present values.
func (b *BMC) settingsNow(static map[string]any) map[string]any {
	document := maps.Clone(static)
	boot := map[string]any{"BootOrder": []any{}, "BootSourceOverrideMode": nil, "StopBootOnFault": nil}
	switch b.options.Personality.Boot.Settings.Members {
	case SettingsOverride:
		boot = b.bootDocument(b.shown(*b.override()), true)
		if etag := b.servedETag(b.etag()); etag != "" {
			document["@odata.etag"] = etag
		}
	case SettingsTargets:
		b.addBootLists(boot)
	}
	if order := b.options.Personality.Boot.Order; order != nil && order.AtSettings {
		b.addOrder(boot, true)
	}
	document["Boot"] = boot
	return document
}

// patchBoot changes the override at the system or at its settings object.
func (b *BMC) patchBoot(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	var change struct {
		Boot *struct {
			Enabled *string  `json:"BootSourceOverrideEnabled"`
			Target  *string  `json:"BootSourceOverrideTarget"`
			Mode    *string  `json:"BootSourceOverrideMode"`
			URI     any      `json:"HttpBootUri"`
			Order   []string `json:"BootOrder"`
			Aliases []string `json:"AliasBootOrder"`
		}
	}
	hasURI := bytes.Contains(body, []byte(memberHTTPURI))
	b.mu.Lock()
	defer b.mu.Unlock()
	personality := b.options.Personality
	atSettings := path == personality.pathSettings()
	if err := json.Unmarshal(body, &change); err != nil || change.Boot == nil {
		b.refuse(w, http.StatusBadRequest, "MalformedJSON", "The request body submitted was malformed JSON, or has no Boot.")
		return
	}
	if b.patchOrder(w, path, append(change.Boot.Order, change.Boot.Aliases...)) {
		return
	}
	if b.refusesChange(w, r, atSettings) {
		return
	}
	next := *b.override()
	for member, value := range map[*string]*string{&next.enabled: change.Boot.Enabled, &next.target: change.Boot.Target, &next.mode: change.Boot.Mode} {
		if value != nil {
			*member = *value
		}
	}
	if hasURI && !b.changeURI(w, &next, change.Boot.URI) {
		return
	}
	if change.Boot.Target == nil && personality.Boot.AlwaysContinuous && !hasURI {
		writeText(w, http.StatusBadRequest, "Missing the BootSourceOverrideTarget and/or BootSourceOverrideMode element")
		return
	}
	b.takeOverride(w, next, change.Boot.Mode != nil)
}

// takeOverride stores an override that the BMC offers, and refuses any other.
func (b *BMC) takeOverride(w http.ResponseWriter, next bootOverride, hasMode bool) {
	if key, message := b.options.Personality.Boot.check(next, hasMode); key != "" {
		b.refuse(w, http.StatusBadRequest, key, message)
		return
	}
	b.storeOverride(next, hasMode)
	b.confirmOverride(w)
}

// refusesChange refuses a change that comes to the wrong resource or with the wrong ETag, and reports whether it has.
func (b *BMC) refusesChange(w http.ResponseWriter, r *http.Request, atSettings bool) bool {
	if b.options.Personality.Boot.Settings != nil && atSettings != b.options.Personality.Boot.Settings.canTakeOverride() {
		b.refuseElsewhere(w)
		return true
	}
	if b.faults.StaleETags {
		b.refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
		return true
	}
	if status, key := b.checkIfMatch(r.Header.Get("If-Match"), b.etag()); status != 0 {
		b.refuse(w, status, key, "The ETag supplied did not match the ETag required to change this resource.")
		return true
	}
	return false
}

// refuseElsewhere refuses a change of the override that is accepted at the other resource.
func (b *BMC) refuseElsewhere(w http.ResponseWriter) {
	key, message := "PropertyNotWritable", "The property BootSourceOverrideTarget is a read only property and cannot be assigned a value."
	if refusal := b.options.Personality.Boot.Settings.Refusal; refusal != "" {
		key = refusal
	}
	if strings.Contains(key, "FutureStateURI") {
		message = "Support of this Operation for Boot Properties is moved to FutureState URI(" + b.options.Personality.pathSettings() + ")"
	}
	b.refuse(w, http.StatusBadRequest, key, message)
}

// check returns the message with which the override is refused, or "".
func (r BootRules) check(next bootOverride, hasMode bool) (key, message string) {
	if hasMode {
		if key, message = r.checkMode(next.mode); key != "" {
			return key, message
		}
	}
	switch {
	case !slices.Contains(r.targets(), next.target):
		return "PropertyValueNotInList", "The value " + next.target + " is not in the list of acceptable values."
	case !r.AlwaysContinuous && !slices.Contains(r.enabledValues(), next.enabled):
		return "PropertyValueNotInList", "The value " + next.enabled + " is not in the list of acceptable values."
	case r.NeedsTarget && next.enabled != "Disabled" && next.target == "None":
		return "PropertyValueConflict", "The property BootSourceOverrideEnabled conflicts with BootSourceOverrideTarget."
	}
	return "", ""
}

// checkMode returns the message with which a mode is refused, or "".
func (r BootRules) checkMode(mode string) (key, message string) {
	switch {
	case r.Mode == BootModeAbsent:
		return "PropertyUnknown", "The property BootSourceOverrideMode is not in the list of valid properties for the resource."
	case r.Mode == BootModeReadOnly && r.ModeRefusal != "":
		return r.ModeRefusal, "The operation is not supported."
	case r.Mode == BootModeReadOnly:
		return "PropertyNotWritable", "The property BootSourceOverrideMode is a read only property."
	case len(r.Modes) > 0 && !slices.Contains(r.Modes, mode):
		return "PropertyValueNotInList", "The value " + mode + " is not in the list of acceptable values."
	}
	return "", ""
}

// storeOverride stores what the firmware makes of the override.
func (b *BMC) storeOverride(next bootOverride, hasMode bool) {
	rules := b.options.Personality.Boot
	set := b.override()
	set.version++
	if b.faults.NullBootTarget || b.faults.KeepsBootTarget {
		return
	}
	b.former, b.formerReads = *set, rules.ShowsAfter
	next.version = set.version
	switch {
	case rules.Dropped:
		next.enabled, next.mode = "Disabled", "Legacy"
	case rules.AlwaysContinuous:
		next.enabled = "Continuous"
	case !hasMode && rules.Mode == BootModeFallsBack:
		next.mode = "Legacy"
	}
	*set = next
}

// confirmOverride answers a change of the override that was accepted.
func (b *BMC) confirmOverride(w http.ResponseWriter) {
	switch {
	case b.options.Personality.Boot.SuccessBody:
		write(w, http.StatusOK, map[string]any{"error": map[string]any{
			"code": "iLO.0.10.ExtendedInfo", "message": "See @Message.ExtendedInfo for more information.",
			"@Message.ExtendedInfo": []any{map[string]any{"MessageId": "Base.1.4.Success"}},
		}})
	case b.options.Personality.Boot.Dropped:
		w.WriteHeader(http.StatusOK)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// etag returns the ETag of the resource that has the override, as it is compared.
func (b *BMC) etag() string { return fmt.Sprintf(`"%d"`, b.override().version) }

// servedETag returns an ETag as it is handed out, or "".
func (b *BMC) servedETag(etag string) string {
	switch b.options.Personality.ETag {
	case ETagOptional, ETagRequired, ETagRefused:
		return etag
	case ETagWeak:
		return "W/" + etag
	case ETagGzip:
		return strings.TrimSuffix(etag, `"`) + `-gzip"`
	case ETagBare:
		return strings.Trim(etag, `"`)
	}
	return ""
}

// checkIfMatch returns the status and the message with which a change with this If-Match header is refused where the resource has the ETag; 0 when it is accepted.
func (b *BMC) checkIfMatch(ifMatch, etag string) (status int, key string) {
	rule := b.options.Personality.ETag
	isOptional := rule == "" || rule == ETagOptional || rule == ETagRefused
	switch {
	case ifMatch == "" && isOptional, rule == "", ifMatch == "*" && (rule == ETagOptional || rule == ETagStar), ifMatch == etag && rule != ETagRefused && rule != ETagStar:
		return 0, ""
	case ifMatch == "":
		return http.StatusPreconditionRequired, "PreconditionRequired"
	}
	return http.StatusPreconditionFailed, "PreconditionFailed"
}
