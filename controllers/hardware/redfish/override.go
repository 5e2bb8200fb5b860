package redfish

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Members of Boot and their values.
const (
	memberEnabled = "BootSourceOverrideEnabled"
	memberTarget  = "BootSourceOverrideTarget"
	memberMode    = "BootSourceOverrideMode"
	memberHTTPURI = "HttpBootUri"
	allowable     = "@Redfish.AllowableValues"

	enabledDisabled   = "Disabled"
	enabledOnce       = "Once"
	enabledContinuous = "Continuous"
	modeUEFI          = "UEFI"
	targetNone        = "None"
	targetPxe         = "Pxe"
	targetHdd         = "Hdd"
	targetHTTP        = "UefiHttp"
	targetBootNext    = "UefiBootNext"
)

// bootTargets are the Redfish targets for a boot source. The first one that the BMC offers is used. Only Supermicro offers UsbCd and CD/DVD:
// newer boards boot virtual media as the first and ignore Cd, older ones know the second.
var bootTargets = map[hardware.BootSource][]string{
	hardware.BootNetwork: {targetPxe},
	hardware.BootDisk:    {targetHdd},
	hardware.BootMedia:   {"UsbCd", "Cd", "CD/DVD", "Usb"},
	hardware.BootPinned:  {targetHTTP},
}

// bootObject is a resource whose member Boot has the override or a part of it: a system or its settings object.
type bootObject struct {
	uri   string
	etags []string
	boot  map[string]json.RawMessage
}

// hasMember reports whether Boot has the member, or lists what may be written to it.
func (o *bootObject) hasMember(member string) bool {
	_, hasValue := o.boot[member]
	_, hasList := o.boot[member+allowable]
	return hasValue || hasList
}

// hasOverride reports whether the override can be changed at this resource, as far as it tells.
func (o *bootObject) hasOverride() bool {
	return o.hasMember(memberTarget) || o.hasMember(memberEnabled)
}

// text returns the value of a member; "" when it is absent, null or no text.
func (o *bootObject) text(member string) string {
	var text string
	if json.Unmarshal(o.boot[member], &text) != nil {
		return ""
	}
	return text
}

// offered returns the values that the resource lists for a member.
func (o *bootObject) offered(member string) []string {
	var list []string
	if o == nil || json.Unmarshal(o.boot[member+allowable], &list) != nil {
		return nil
	}
	return list
}

// override is a boot override that is wanted. An empty target is not sent, nor is an empty URI.
type override struct {
	enabled, target, uri string
}

// offered returns the values that may be written to the member, from the resource that is changed or else from the other one.
func (p bootPlace) offered(member string) []string {
	if list := p.home.offered(member); len(list) > 0 {
		return list
	}
	return p.other.offered(member)
}

// choose returns the overrides for the source and the URI, in the order in which they are tried: with each of the enabled values that the BMC offers.
func (p bootPlace) choose(source hardware.BootSource, uri string, enabled []string) ([]override, error) {
	targets, ok := bootTargets[source]
	if !ok {
		return nil, hardware.Errorf(hardware.Invalid, "", "", "unknown boot source %q", source)
	}
	if uri != "" && p.withURI() == nil {
		return nil, hardware.Errorf(hardware.Unsupported, "", "", "the BMC's Boot has no %s, so that no URL can be pinned for UEFI HTTP boot", memberHTTPURI)
	}
	offered := p.offered(memberTarget)
	target := firstOffered(targets, offered)
	if target == "" {
		hint := ""
		if source == hardware.BootNetwork && firstOffered([]string{targetHTTP}, offered) != "" {
			hint = "; " + targetHTTP + " is offered: PinnedHTTP among the ways of the NodeProvider uses it"
		}
		return nil, hardware.Errorf(hardware.Unsupported, "", "", "the BMC offers the boot targets %v, needed is one of %v%s", offered, targets, hint)
	}
	var wanted []override
	for _, value := range enabled {
		if value = firstOffered([]string{value}, p.offered(memberEnabled)); value != "" {
			wanted = append(wanted, override{enabled: value, target: target, uri: uri})
		}
	}
	if len(wanted) == 0 {
		return nil, hardware.Errorf(hardware.Unsupported, "", "", "the BMC offers an override that is %v, needed is one of %v", p.offered(memberEnabled), enabled)
	}
	return wanted, nil
}

// firstOffered returns the first wanted value that is offered, as the BMC spells it; the first wanted one when nothing is listed.
func firstOffered(wanted, offered []string) string {
	if len(offered) == 0 {
		return wanted[0]
	}
	for _, value := range wanted {
		if i := slices.IndexFunc(offered, func(o string) bool { return strings.EqualFold(o, value) }); i >= 0 {
			return offered[i]
		}
	}
	return ""
}

// isSetTo reports whether the resource reports the override, for a UEFI boot. Example of what it refuses: an override Pxe that somebody has
// left with the mode Legacy. The server would boot from the network as a BIOS does, and find no boot loader for it.
func (o *bootObject) isSetTo(want override) bool {
	return o.text(memberTarget) == want.target && o.text(memberEnabled) == want.enabled && !o.isLegacy() && (want.uri == "" || o.text(memberHTTPURI) == want.uri)
}

// isLegacy reports whether the resource reports a mode that is not UEFI.
func (o *bootObject) isLegacy() bool {
	mode := o.text(memberMode)
	return mode != "" && !strings.EqualFold(mode, modeUEFI)
}

// isSet reports whether the resource has an override. One without a target is none.
func (o *bootObject) isSet() bool {
	enabled, target := o.text(memberEnabled), o.text(memberTarget)
	return enabled != "" && !strings.EqualFold(enabled, enabledDisabled) && target != "" && !strings.EqualFold(target, targetNone)
}

// isDisk reports whether the target of the override is the disk.
func (o *bootObject) isDisk() bool { return strings.EqualFold(o.text(memberTarget), targetHdd) }

// isSet reports whether an override is set, by the resource that is changed or by the other one: where that is a system, it has the one that is in effect.
func (p bootPlace) isSet() bool { return p.home.isSet() || p.other != nil && p.other.isSet() }

// isTarget reports whether a target that a resource reports is the one that is wanted.
func (want override) isTarget(reported string) bool {
	return reported == want.target || want.target == targetPxe && reported == targetBootNext
}

// isSameOverride reports whether both resources have the same override. The other one may be nil.
func (o *bootObject) isSameOverride(other *bootObject) bool {
	if other == nil {
		return false
	}
	for _, member := range []string{memberEnabled, memberTarget, memberMode, memberHTTPURI} {
		if o.text(member) != other.text(member) {
			return false
		}
	}
	return true
}

// errNullTarget is wrapped when the BMC drops the override that it has accepted.
var errNullTarget = errors.New("no override (BootSourceOverrideTarget is null)")

// compare returns an error unless the resource, as it is read after the change, has the override. before is the resource as it was before the change.
//
// A BMC that reports Continuous where Once was set counts as set, because some know nothing else; the caller clears it after the boot. Once
// counts where Continuous was set. Supermicro's firmware reports Pxe as UefiBootNext in UEFI mode. The mode is blamed only where the BMC has
// taken something of the change.
func (want override) compare(before, after *bootObject) error {
	enabled, target, mode := after.text(memberEnabled), after.text(memberTarget), after.text(memberMode)
	isTarget, isEnabled := want.isTarget(target), enabled == enabledOnce || enabled == enabledContinuous
	switch {
	case isTarget && isEnabled && !after.isLegacy():
		return want.compareURI(after)
	case target == "":
		return hardware.Errorf(hardware.Unsupported, "", "",
			"the BMC accepted %s and reports %w: restart the BMC, update its firmware, or look whether its BIOS configuration allows a boot override", want.target, errNullTarget)
	case after.isSameOverride(before) && !(isTarget && isEnabled):
		return hardware.Errorf(hardware.Conflict, "", "", "expected the override %s %s, the BMC accepted it and still reports %q %q with the mode %q, as before", want.target, want.enabled, target, enabled, mode)
	case after.isLegacy() && (isTarget || !isEnabled):
		return hardware.Errorf(hardware.Unsupported, "", "",
			"expected the override %s %s with the mode UEFI, the BMC accepted it and reports %q %q with the mode %q: set the boot mode to UEFI in the firmware's setup",
			want.target, want.enabled, target, enabled, mode)
	}
	// When the firmware reports the change late, the next call succeeds.
	return hardware.Errorf(hardware.Conflict, "", "", "expected the override %s %s, the BMC reports %q %q", want.target, want.enabled, target, enabled)
}

// isShown reports whether the resource, as it is read after the change, has the override.
func (want override) isShown(after *bootObject) bool { return want.compare(nil, after) == nil }

// compareURI returns an error unless the resource has the URI that is wanted. The URIs are not in the error, because they are secrets.
//
// Without it: the BMC drops the URI, and the firmware boots by HTTP from whatever a DHCP server on the network names.
func (want override) compareURI(after *bootObject) error {
	seen := after.text(memberHTTPURI)
	if want.uri == "" || seen == want.uri {
		return nil
	}
	what := "none"
	if seen != "" {
		what = "another one"
	}
	return hardware.Errorf(hardware.Unsupported, "", "", "the BMC accepted a URL for UEFI HTTP boot and reports %s in %s: update its firmware, or choose another way to boot", what, memberHTTPURI)
}

// isDisabled reports whether the override disables one.
func (want override) isDisabled() bool { return strings.EqualFold(want.enabled, enabledDisabled) }

// isCleared reports whether the resource, as it is read after the change, has no override any more, or that of the disk where that was asked for.
func (want override) isCleared(after *bootObject) bool {
	return !after.isSet() || !want.isDisabled() && after.isDisk()
}

// clearedOverrides returns the overrides that clear one, in the order in which they are tried: those that the BMC lists, or all where it
// lists nothing.
func clearedOverrides(p bootPlace) []override {
	var cleared []override
	targets := p.offered(memberTarget)
	none := firstOffered([]string{targetNone}, targets)
	if disabled := firstOffered([]string{enabledDisabled}, p.offered(memberEnabled)); disabled != "" {
		if none != "" {
			cleared = append(cleared, override{enabled: disabled, target: none})
		}
		cleared = append(cleared, override{enabled: disabled})
	} else if once := firstOffered(onceFirst, p.offered(memberEnabled)); once != "" && none != "" {
		cleared = append(cleared, override{enabled: once, target: none})
	}
	if disk := firstOffered([]string{targetHdd}, targets); disk != "" {
		cleared = append(cleared, override{enabled: enabledContinuous, target: disk})
	}
	return cleared
}
