package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const opBoot = "set boot override"

// The values of BootSourceOverrideEnabled in the order in which they are tried.
var (
	onceFirst   = []string{enabledOnce, enabledContinuous}
	alwaysFirst = []string{enabledContinuous, enabledOnce}
)

// SetBootOnce implements hardware.BMC. It reads the override back and fails with Unsupported or Conflict when the BMC reports none or
// another one. Example: the firmware accepts the override Pxe and drops it. The server would then boot the disk of the former tenant
// instead of the agent, and nobody would notice before the time-out of the boot.
func (b *bmc) SetBootOnce(ctx context.Context, source hardware.BootSource) error {
	return b.call(ctx, opBoot, func(c *conn) error { return c.setBoot(source, "", onceFirst) })
}

// SetBootAlways implements hardware.BMC, with the same check.
func (b *bmc) SetBootAlways(ctx context.Context, source hardware.BootSource) error {
	return b.call(ctx, opBoot, func(c *conn) error { return c.setBoot(source, "", alwaysFirst) })
}

// ClearBoot implements hardware.BMC. Whatever override is set is disabled, also one of the disk. Where an override cannot be disabled, it is set to the disk.
func (b *bmc) ClearBoot(ctx context.Context) error {
	return b.call(ctx, opClearBoot, (*conn).clearBoot)
}

const opClearBoot = "clear boot override"

// clearBoot disables the override.
func (c *conn) clearBoot() error {
	place, err := c.findBootPlace()
	if err != nil {
		return err
	}
	if place.isBare && place.order() == nil {
		// What may be there is not loaded yet. A BMC that has nothing keeps nothing.
		if err := c.loadingError(place, "neither a boot override nor a boot order"); hardware.KindOf(err) == hardware.Busy || c.keptOrder(place) != nil {
			return err
		}
		return nil
	}
	if place.isSet() {
		if err := c.disableOverride(place); err != nil {
			return err
		}
	}
	return c.putBackOrder(place)
}

// disableOverride disables the override of the place.
func (c *conn) disableOverride(place bootPlace) error {
	uri := place.home.uri
	if c.line().isUndisabled(uri) && place.reported().isDisk() {
		return nil
	}
	for _, cleared := range clearedOverrides(place) {
		_, after, err := c.changeOverride(place, cleared, cleared.isCleared)
		if err != nil && !isRefused(err) {
			return err
		}
		if err == nil && cleared.isCleared(after) {
			c.line().keepUndisabled(uri, !cleared.isDisabled())
			return nil
		}
	}
	return hardware.Errorf(hardware.Unsupported, opClearBoot, c.bmc.endpoint.Address,
		"the BMC keeps the override %q %q, so the server boots from there until somebody clears it in the firmware's setup",
		place.reported().text(memberTarget), place.reported().text(memberEnabled))
}

// setBoot makes the next boot come from the source, with the URI for UEFI HTTP boot if that is not empty: by the override, or by the boot order where no
// override reaches the source. enabled are the values of BootSourceOverrideEnabled to use, the first that the BMC offers.
func (c *conn) setBoot(source hardware.BootSource, uri string, enabled []string) error {
	place, err := c.findBootPlace()
	if err != nil {
		return err
	}
	if place.isBare {
		if uri != "" {
			return c.loadingError(place, "no boot override, so that no URL can be pinned")
		}
		return c.setBootOrder(place, source)
	}
	wanted, err := place.choose(source, uri, enabled)
	if err == nil {
		err = c.setOverride(place, wanted)
	} else {
		err = c.bootError(err)
	}
	if err == nil || uri != "" || place.order() == nil {
		return err
	}
	if isNotReached := len(wanted) == 0 || isRefused(err) || errors.Is(err, errNullTarget); !isNotReached {
		return err
	}
	if byOrder := c.setBootOrder(place, source); hardware.KindOf(byOrder) != hardware.Unsupported {
		return byOrder
	}
	return err
}

// setOverride sets the first of the overrides that the BMC takes. A BMC that lists none may still refuse the first.
func (c *conn) setOverride(place bootPlace, wanted []override) (err error) {
	for _, want := range wanted {
		late := c.line().lateOverride(place.home.uri, want, c.bmc.client.options.Clock())
		if (!place.isPending || late.isSent()) && place.reported().isSetTo(want) {
			c.line().endLate(place.home.uri)
			return nil
		}
		var before, after *bootObject
		if late.isSent() {
			before = place.objectAt(late.uri)
			after, err = c.readChanged(late.uri, want.isShown)
		} else {
			before, after, err = c.changeOverride(place, want, want.isShown)
		}
		if err == nil {
			return c.bootError(c.boundLate(place.home.uri, before.uri, want, late, want.compare(before, after)))
		}
		if !isRefused(err) {
			return err
		}
	}
	return err
}

// objectAt returns the resource at the path.
func (p bootPlace) objectAt(uri string) *bootObject {
	if p.other != nil && p.other.uri == uri {
		return p.other
	}
	return p.home
}

// bootError adds operation and target to an error of the pure functions of override.go.
func (c *conn) bootError(err error) error {
	var typed *hardware.Error
	if errors.As(err, &typed) {
		typed.Op, typed.Target = opBoot, c.bmc.endpoint.Address
	}
	return err
}

// bootPlace is where the override of a system is read and changed.
type bootPlace struct {
	// home is the resource to change. other is the other of system and settings object; nil: there is none.
	home, other *bootObject
	// isPending is true where home is a settings object, whose values wait for the next boot. They may be left from an earlier boot, so an
	// override that it has already is sent again. Without it: a server has booted with the override, the firmware has used it up, and the
	// settings object still has it. The next attempt would find it set, and the server would boot the disk of the former tenant.
	isPending bool
	// isBare is true where neither resource has an override: the BMC has not loaded it yet, or has none.
	isBare bool
}

// reported returns the resource that reports the present override.
func (p bootPlace) reported() *bootObject {
	if _, reports := p.home.boot[memberEnabled]; !reports && p.other != nil {
		return p.other
	}
	return p.home
}

// findBootPlace reads the system and its settings object and returns where the override is changed.
//
// A settings object lists what a change to it may hold (DSP0266, 9.10). So where its Boot has members of the override, they are read and
// changed there, and not at the system, which keeps its values until the server boots.
func (c *conn) findBootPlace() (bootPlace, error) {
	s, err := c.serverSystem()
	if err != nil {
		return bootPlace{}, err
	}
	system := &bootObject{uri: s.ODataID, boot: s.links.Boot}
	if etag := s.GetETag(); etag != "" {
		system.etags = []string{etag}
	}
	settings, err := c.readBootObject(s.links.Settings.SettingsObject.String())
	if err != nil {
		return bootPlace{}, err
	}
	switch {
	case settings != nil && settings.hasOverride():
		c.line().endAwaited(system.uri)
		return bootPlace{home: settings, other: system, isPending: true}, nil
	case !system.hasOverride():
		return bootPlace{home: system, other: settings, isBare: true}, nil
	}
	c.line().endAwaited(system.uri)
	return bootPlace{home: system, other: settings}, nil
}

// readBootObject reads a settings object. It returns nil when the path is empty or the BMC does not have the resource.
func (c *conn) readBootObject(uri string) (*bootObject, error) {
	if uri == "" {
		return nil, nil
	}
	var document struct{ Boot json.RawMessage }
	etags, err := c.readDocument(uri, &document)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := &bootObject{uri: uri, etags: etags}
	_ = json.Unmarshal(document.Boot, &o.boot) // a Boot that is no object has no override
	return o, nil
}

// changeOverride sets the override and returns the resource as it was before, and as it is read after the change.
//
// When the resource refuses the change as one that belongs elsewhere, it is sent to the other one: some settings objects list targets that
// only the system accepts, and some systems answer with the URI of a settings object to which they do not link.
func (c *conn) changeOverride(place bootPlace, want override, isShown func(*bootObject) bool) (before, after *bootObject, err error) {
	changed := place.home
	err = c.writeOverride(changed, want)
	if isRefusedHere(err) {
		other, readErr := c.otherBootObject(place, err)
		if readErr != nil {
			return nil, nil, readErr
		}
		if other != nil {
			changed = other
			err = c.writeOverride(other, want)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	after, err = c.readChanged(changed.uri, isShown)
	return changed, after, err
}

// futureURI finds the URI in "Support of this Operation for Boot Properties is moved to FutureState URI(/redfish/v1/Systems/DGX/SD)".
var futureURI = regexp.MustCompile(`/redfish/v1/[^\s()"'<>]+`)

// otherBootObject returns the resource to which a refused change is sent instead; nil when there is none.
func (c *conn) otherBootObject(place bootPlace, refused error) (*bootObject, error) {
	if place.other != nil {
		return place.other, nil
	}
	if !hasMessage(refused, keyFutureState) {
		return nil, nil
	}
	for _, m := range refusalOf(refused).messages {
		if uri := futureURI.FindString(m.String()); uri != "" && uri != place.home.uri {
			return c.readBootObject(uri)
		}
	}
	return c.readBootObject(strings.TrimRight(place.home.uri, "/") + "/SD")
}

// writeOverride sends the override in one request, because some BMCs refuse to enable an override without its target. It includes the mode
// where the resource has one: without it some firmware falls back to a BIOS boot. Where the mode is refused, it is left out.
func (c *conn) writeOverride(o *bootObject, want override) error {
	boot := map[string]any{memberEnabled: want.enabled}
	if want.target != "" {
		boot[memberTarget] = want.target
	}
	if want.uri != "" {
		boot[memberHTTPURI] = want.uri
	}
	if o.hasMember(memberMode) {
		boot[memberMode] = modeUEFI
	}
	payload := map[string]any{"Boot": boot}
	err := c.patch(o.uri, o.etags, payload)
	if _, sent := boot[memberMode]; sent && isRefused(err) && !hasMessage(err, keyFutureState) {
		delete(boot, memberMode)
		err = c.patch(o.uri, o.etags, payload)
	}
	return err
}

// isRefused reports whether the BMC refused the content of a change, so that the same change in another form may succeed.
func isRefused(err error) bool {
	r := refusalOf(err)
	if r == nil {
		return false
	}
	kind := r.kind()
	return kind == hardware.Unsupported || kind == hardware.Invalid && r.status < 500
}

// isRefusedHere reports whether the BMC refused a change of this resource as one that cannot be made there.
func isRefusedHere(err error) bool {
	return isMissing(err) || hasMessage(err, keyFutureState, "PropertyNotWritable", "PropertyUnknown", "PropertyReadOnly")
}

// keyFutureState is the message with which AMI's firmware says that a change belongs to the settings object.
const keyFutureState = "OperationSupportedInFutureStateURI"
