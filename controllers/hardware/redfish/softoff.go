package redfish

import (
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	forceOff         = "ForceOff"
	gracefulShutdown = "GracefulShutdown"
	pushPowerButton  = "PushPowerButton"
	// softOffPause is how long a server has to go off after a request that its operating system may ignore, before the next one is sent. Within the time
	// that a power-off has (hardware.Timeouts), each type is tried.
	softOffPause = time.Minute
	// softOffMemory is how long the last request counts as one of the same power-off.
	softOffMemory = 5 * time.Minute
)

// softOff is the last request of a power-off that is not forced.
type softOff struct {
	at time.Time
	// next is the index of the reset type to send next.
	next int
}

// isForcedOff reports whether the reset type cuts the power, whatever runs on the server.
func isForcedOff(kind string) bool {
	kind = strings.ToLower(kind)
	isForced := strings.Contains(kind, "force") || strings.Contains(kind, "hard") || strings.Contains(kind, "immediate")
	return isOffType(kind) && (isForced || kind == "off" || kind == "poweroff")
}

// isOffType reports whether a reset type leads to a server that is off, by its name.
func isOffType(kind string) bool {
	kind = strings.ToLower(kind)
	isOff := strings.Contains(kind, "off") || strings.Contains(kind, "shutdown")
	return isOff && !strings.Contains(kind, "cycle") && !strings.Contains(kind, "restart") && !strings.Contains(kind, "reset")
}

// otherOffTypes returns the reset types beside ForceOff that lead to a server that is off: those of vendors that cut the power, then GracefulShutdown, and
// then vendors' others.
func otherOffTypes(allowed []string) []string {
	var forced, soft []string
	for _, kind := range allowed {
		switch {
		case !isOffType(kind) || strings.EqualFold(kind, forceOff) || strings.EqualFold(kind, gracefulShutdown):
		case isForcedOff(kind):
			forced = append(forced, kind)
		default:
			soft = append(soft, kind)
		}
	}
	return slices.Concat(forced, []string{gracefulShutdown}, soft)
}

// softOff turns the server off where the BMC can only ask its operating system to. One request is sent in softOffPause, each of a further type, because a
// second push on the power button may turn on what the first one has turned off. That a request is accepted says nothing: the caller waits until the BMC
// reports that the server is off.
//
// Without it: the BMC offers no ForceOff, and a server that anybody could shut down is never erased.
func (c *conn) softOff(op string, s *system, kinds []string) error {
	now := c.bmc.client.options.Clock()
	last := c.line().lastSoftOff(s.ODataID, now)
	if !last.at.IsZero() && now.Sub(last.at) < softOffPause {
		return nil
	}
	var err error
	for range kinds {
		kind := kinds[last.next%len(kinds)]
		c.bmc.client.options.Log.Info("The BMC has no ForceOff: the server is asked to go off", "bmc", c.bmc.endpoint.Address, "path", s.ODataID, "reset", kind, "offered", kinds)
		if err = c.reset(op, s, hardware.TurnOff, kind); err != nil && !isRefused(err) {
			return err
		}
		last.next = (last.next + 1) % len(kinds)
		if err == nil {
			last.at = now
			c.line().keepSoftOff(s.ODataID, last)
			return nil
		}
	}
	return err
}

// lastSoftOff returns the last request of a power-off of the system; the zero value when that is long ago.
func (l *line) lastSoftOff(uri string, now time.Time) softOff {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.softOffs[uri]
	if since := now.Sub(last.at); since < 0 || since >= softOffMemory {
		return softOff{}
	}
	return last
}

// keepSoftOff keeps the last request of a power-off of the system.
func (l *line) keepSoftOff(uri string, last softOff) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.softOffs[uri] = last
}

// endSoftOff forgets the requests to a system that is off.
func (l *line) endSoftOff(uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.softOffs, uri)
}
