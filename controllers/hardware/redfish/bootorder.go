package redfish

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Members of Boot that have the persistent boot order (DSP0268): by the references of boot options, or by the names of boot sources.
const (
	memberOrder      = "BootOrder"
	memberAliasOrder = "AliasBootOrder"
	memberSelection  = "BootOrderPropertySelection"
	memberOptions    = "BootOptions"
)

const (
	// maxBootOptions is how many boot options of a server are read.
	maxBootOptions = 64
	// maxKeptEntries is how many entries of a boot order are kept: what HostAttempt.bootOrder holds.
	maxKeptEntries = 128
	// loadLimit is how long a BMC may report neither a boot override nor a boot order before that counts as all that it has.
	loadLimit = 2 * time.Minute
)

// bootOrder is the persistent boot order of a system.
type bootOrder struct {
	// member is the one that is changed, home the resource at which, and other the one that is tried when that refuses; nil: there is none.
	member      string
	home, other *bootObject
	// entries are in the order that is in effect, as far as the BMC tells.
	entries []string
}

// list returns the texts of a member that is a list.
func (o *bootObject) list(member string) []string {
	var items []json.RawMessage
	if o == nil || json.Unmarshal(o.boot[member], &items) != nil {
		return nil
	}
	var list []string
	for _, item := range items {
		var text string
		if json.Unmarshal(item, &text) == nil && text != "" && len(list) < maxListItems {
			list = append(list, text)
		}
	}
	return list
}

// order returns the boot order of the place; nil when it has none. It is changed at the settings object where that has the member, even without entries: a
// settings object lists what a change to it may hold.
func (p bootPlace) order() *bootOrder {
	system, settings := p.objects()
	member := memberOrder
	if isAlias := strings.EqualFold(system.text(memberSelection), memberAliasOrder); isAlias || len(system.list(member)) == 0 && len(settings.list(member)) == 0 {
		member = memberAliasOrder
	}
	o := &bootOrder{member: member, home: system, other: settings, entries: system.list(member)}
	if settings != nil && settings.boot[member] != nil {
		o.home, o.other = settings, system
		if len(o.entries) == 0 {
			o.entries = settings.list(member)
		}
	}
	if len(o.entries) == 0 {
		return nil
	}
	return o
}

// objects returns the system and its settings object, which may be nil.
func (p bootPlace) objects() (system, settings *bootObject) {
	if p.isPending {
		return p.other, p.home
	}
	return p.home, p.other
}

// systemURI returns the path of the system.
func (p bootPlace) systemURI() string {
	system, _ := p.objects()
	return system.uri
}

// setBootOrder makes the server boot from the source first, by its boot order. It is for a BMC that has no override with that source.
//
// The order as it was is kept before it is changed, and ClearBoot puts it back.
func (c *conn) setBootOrder(place bootPlace, source hardware.BootSource) error {
	order := place.order()
	if order == nil {
		return c.loadingError(place, "neither a boot override nor a boot order")
	}
	options, err := c.readBootOptions(place)
	if err != nil {
		return err
	}
	first := order.entriesOf(source, options)
	if len(first) == 0 {
		return c.loadingError(place, "no boot override, and a boot order without "+string(source)+": "+describeOptions(order.entries, options))
	}
	c.line().endAwaited(place.systemURI())
	if hasPrefix(order.entries, first) && (order.home.list(order.member) == nil || hasPrefix(order.home.list(order.member), first)) {
		return nil
	}
	// An order that Ingot has changed already, for this source or another one, is not kept in place of the one before.
	if !hasPrefix(order.entries, first) && c.keptOrder(place) == nil {
		if err := c.keepOrder(place, order.entries); err != nil {
			return err
		}
	}
	wanted := slices.Concat(first, without(order.entries, first))
	return c.changeOrder(opBoot, order, wanted, func(seen []string) bool { return hasPrefix(seen, first) })
}

// changeOrder sets the boot order, and fails unless the resource shows it then.
func (c *conn) changeOrder(op string, order *bootOrder, wanted []string, isShown func([]string) bool) error {
	payload := map[string]any{"Boot": map[string]any{order.member: wanted}}
	changed := order.home
	err := c.patch(changed.uri, changed.etags, payload)
	if isRefused(err) && order.other != nil {
		changed = order.other
		err = c.patch(changed.uri, changed.etags, payload)
	}
	if isRefused(err) {
		return hardware.Errorf(hardware.Unsupported, op, c.bmc.endpoint.Address, "the BMC refuses the %s %v: set it in the firmware's setup: %w", order.member, wanted, err)
	}
	if err != nil {
		return err
	}
	after, err := c.readChanged(changed.uri, func(after *bootObject) bool { return isShown(after.list(order.member)) })
	if err != nil {
		return err
	}
	awaited := changed.uri + "#" + op
	if seen := after.list(order.member); !isShown(seen) {
		kind := hardware.Conflict // a further call may mend it
		if now := c.bmc.client.options.Clock(); now.Sub(c.line().awaitedSince(awaited, now)) >= lateLimit {
			kind = hardware.Unsupported
		}
		return hardware.Errorf(kind, op, c.bmc.endpoint.Address, "expected the %s %v, the BMC accepted it and reports %v at %s: restart the BMC or set it in the firmware's setup if that stays so", order.member, wanted, seen, changed.uri)
	}
	c.line().endAwaited(awaited)
	return nil
}

// keptOrder returns the boot order that is to be put back; nil when there is none.
func (c *conn) keptOrder(place bootPlace) []string {
	if memory := c.bmc.endpoint.BootOrder; memory != nil {
		return memory.Kept()
	}
	return c.line().keptOrder(place.systemURI())
}

// keepOrder keeps the boot order that is to be put back; nil: it was.
func (c *conn) keepOrder(place bootPlace, order []string) error {
	order = order[:min(len(order), maxKeptEntries)] // the others follow, in the order that they have then
	if memory := c.bmc.endpoint.BootOrder; memory != nil {
		return memory.Keep(c.ctx, order)
	}
	c.line().keepOrder(place.systemURI(), order)
	return nil
}

// putBackOrder sets the boot order to what it was before Ingot changed it. Entries that are gone are left out. New ones stay where they are: at the front
// where the operating system has put its own there. A boot source of Ingot that was no part of the order goes to its end: it was put in front for the boot.
func (c *conn) putBackOrder(place bootPlace) error {
	kept := c.keptOrder(place)
	if kept == nil {
		return nil
	}
	order := place.order()
	if order == nil {
		return c.loadingError(place, "no boot order")
	}
	isKnown := func(entry string) bool { return slices.Contains(kept, entry) }
	front, err := c.withoutBootSources(place, order.entries[:max(0, slices.IndexFunc(order.entries, isKnown))])
	if err != nil {
		return err
	}
	known := slices.DeleteFunc(slices.Clone(kept), func(entry string) bool { return !slices.Contains(order.entries, entry) })
	wanted := slices.Concat(front, known)
	wanted = slices.Concat(wanted, without(order.entries, wanted))
	if err := c.changeOrder(opClearBoot, order, wanted, func(seen []string) bool { return hasPrefix(seen, wanted) }); err != nil {
		return err
	}
	return c.keepOrder(place, nil)
}

// withoutBootSources returns the entries that Ingot boots no agent from.
func (c *conn) withoutBootSources(place bootPlace, entries []string) ([]string, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	options, err := c.readBootOptions(place)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(entries), func(entry string) bool {
		return slices.Contains([]hardware.BootSource{hardware.BootNetwork, hardware.BootMedia, hardware.BootPinned}, optionOf(entry, options).source())
	}), nil
}

// loadingError returns the error of a BMC that lacks something which some BMCs load when it is read first. It is Busy until loadLimit has passed, where the BMC
// has no boot order yet either.
//
// Without the limit: a BMC has no boot override at all, and a server that nobody can boot is retried without end as one that is busy.
func (c *conn) loadingError(place bootPlace, seen string) error {
	system, _ := place.objects()
	now := c.bmc.client.options.Clock()
	if place.order() == nil && now.Sub(c.line().awaitedSince(system.uri, now)) < loadLimit {
		return hardware.Errorf(hardware.Busy, opBoot, c.bmc.endpoint.Address,
			"the system %s reports %s: when the BMC is still loading it, a later try succeeds; otherwise restart the BMC or update its firmware", system.uri, seen)
	}
	return hardware.Errorf(hardware.Unsupported, opBoot, c.bmc.endpoint.Address,
		"the system %s reports %s: restart the BMC or update its firmware, or have the server boot in a way that the BMC offers", system.uri, seen)
}

// hasPrefix reports whether the entries begin with those.
func hasPrefix(entries, first []string) bool {
	return len(entries) >= len(first) && slices.Equal(entries[:len(first)], first)
}

// without returns the entries that are none of those.
func without(entries, those []string) []string {
	return slices.DeleteFunc(slices.Clone(entries), func(entry string) bool { return slices.Contains(those, entry) })
}

// awaitedSince returns since when something is awaited that has the key.
func (l *line) awaitedSince(key string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, isKept := l.awaited[key]
	if !isKept || since.After(now) {
		since = now
		l.awaited[key] = since
	}
	return since
}

// endAwaited forgets that something was awaited.
func (l *line) endAwaited(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.awaited, key)
}

// keptOrder returns the boot order that is to be put back at the path; nil when there is none.
func (l *line) keptOrder(uri string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.orders[uri]
}

// keepOrder keeps the boot order that is to be put back at the path; nil: none is.
func (l *line) keepOrder(uri string, order []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orders[uri] = order; order == nil {
		delete(l.orders, uri)
	}
}
