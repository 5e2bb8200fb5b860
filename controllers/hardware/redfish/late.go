package redfish

import (
	"errors"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// rereads are the pauses before the reads that follow a change which the BMC does not show yet, of all changes of one call together.
var rereads = []time.Duration{time.Second, time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}

// lateLimit is how long a BMC may show something else than the override that it has accepted, over several calls, before it counts as one that cannot set it.
const lateLimit = 2 * time.Minute

// readChanged reads the resource after a change until it shows it, a few times. It returns what was read last. A BMC that shows a change at once is read once.
//
// Without it: a BMC shows an override some seconds late, with the mode Legacy that it had before, and a person is sent to the firmware's setup.
func (c *conn) readChanged(uri string, isShown func(*bootObject) bool) (*bootObject, error) {
	for {
		after, err := c.readBootObject(uri)
		if err != nil {
			return nil, err
		}
		if after == nil {
			after = &bootObject{uri: uri}
		}
		if isShown(after) || c.reread >= len(rereads) {
			return after, nil
		}
		pause := rereads[c.reread]
		c.reread++
		if sleep := c.bmc.client.options.Sleep; sleep != nil {
			if err := sleep(c.ctx, pause); err != nil {
				return after, nil // the caller compares what was read
			}
		}
	}
}

// boundLate returns the error of an override that the BMC has accepted at one of the resources of a place and does not show. It is a Conflict, which a further
// call may mend, until lateLimit has passed since the first one. late is what was known of it before.
func (c *conn) boundLate(home, changed string, want override, late lateOverride, err error) error {
	now := c.bmc.client.options.Clock()
	var typed *hardware.Error
	if !errors.As(err, &typed) {
		c.line().endLate(home)
		return err
	}
	if late.since.IsZero() {
		late.since = now
	}
	if !late.isSent() {
		late.sent = now
	}
	if typed.Kind == hardware.Unsupported {
		late.since = now.Add(-lateLimit) // it is known, and stays so
	}
	late.uri, late.target = changed, want.target
	c.line().keepLate(home, late)
	if typed.Kind == hardware.Conflict && now.Sub(late.since) >= lateLimit {
		return hardware.Errorf(hardware.Unsupported, opBoot, c.bmc.endpoint.Address,
			"%w; that stays so: restart the BMC or update its firmware, and look whether the boot mode in the firmware's setup is UEFI", typed.Err)
	}
	return err
}

// lateOverride is an override that a BMC has accepted and did not show.
type lateOverride struct {
	// uri is the resource that was changed, and target the target of the override.
	uri, target string
	// since is when the first call ended without it. sent is when it was sent last; zero when it is to be sent again.
	since, sent time.Time
}

// isSent reports whether the override was sent so lately that it is awaited, and not sent again: a BMC may begin anew with each change.
func (o lateOverride) isSent() bool { return !o.sent.IsZero() }

// lateOverride returns what is known of an override that was accepted and not shown, by the path of the home of its place.
func (l *line) lateOverride(home string, want override, now time.Time) lateOverride {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := l.late[home]
	if late.target != want.target || late.since.After(now) {
		return lateOverride{}
	}
	if now.Sub(late.sent) >= lateLimit/2 {
		late.sent = time.Time{}
	}
	return late
}

// keepLate keeps a late override.
func (l *line) keepLate(home string, late lateOverride) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late[home] = late
}

// endLate forgets a late override that is shown.
func (l *line) endLate(home string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.late, home)
}

// isUndisabled reports whether the override at the path is known as one that cannot be disabled.
func (l *line) isUndisabled(uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.undisabled[uri]
}

// keepUndisabled keeps whether the override at the path can be disabled.
func (l *line) keepUndisabled(uri string, isUndisabled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undisabled[uri] = isUndisabled
}
