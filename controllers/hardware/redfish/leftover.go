package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// maxListedSessions is how many sessions of a BMC are read. BMCs have 8 to 64 slots.
	maxListedSessions = 64
	// listPause is how long the sessions of a BMC whose slots are full are not listed again. The list is read with the credentials in each
	// request, and BMCs that do not allow that count it as a failed login.
	listPause = 5 * time.Minute
)

// listedSession is a session as the BMC lists it.
type listedSession struct {
	path string
	// Context is what the client gave when it made the session (Session v1.5, DSP2046), where the BMC keeps that.
	Context  string
	UserName string
}

// listSessions reads the sessions that are open at the BMC.
func listSessions(api *gofish.APIClient, collection string) ([]listedSession, error) {
	var list struct{ Members []schemas.Link }
	if err := getJSON(api, collection, &list); err != nil {
		return nil, err
	}
	var sessions []listedSession
	for _, member := range list.Members[:min(len(list.Members), maxListedSessions)] {
		s := listedSession{}
		if err := getJSON(api, member.String(), &s); err != nil {
			if statusOf(err) == http.StatusNotFound {
				continue // it has ended meanwhile
			}
			return nil, err
		}
		s.path = member.String()
		sessions = append(sessions, s)
	}
	return sessions, nil
}

// isLeft reports whether a session was left by an earlier process of this installation.
//
// The Context is the proof: it holds the identity of the installation, and sessions of this process are known by their paths. The account's name
// alone proves nothing, because monitoring or a person may use the same account: without the administrator's word that nobody does, their
// sessions would be ended in the middle of their work.
func (c *Client) isLeft(b *bmc, s listedSession) bool {
	if c.hasSession(b.endpoint.Address, s.path) {
		return false
	}
	return c.options.Owner != "" && s.Context == c.options.Owner || c.options.ExclusiveAccount && s.UserName == b.endpoint.Username
}

// hasSession reports whether this process has made the session.
func (c *Client) hasSession(address, path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if s.address == address && sessionID(s.path) == sessionID(path) {
			return true
		}
	}
	return false
}

// sessionID returns the path of a session without what BMCs write in one place and not in another.
func sessionID(path string) string {
	if at, err := url.Parse(path); err == nil {
		path = at.Path
	}
	return strings.TrimRight(path, "/")
}

// endLeftSessions ends those of the sessions that an earlier process left, and returns how many it ended.
func (c *Client) endLeftSessions(b *bmc, l *login, sessions []listedSession) (ended int) {
	for _, s := range sessions {
		if !c.isLeft(b, s) {
			continue
		}
		_, err := l.api.Delete(s.path)
		if err != nil && statusOf(err) != http.StatusNotFound {
			c.options.Log.Info("A BMC session that an earlier manager left is not ended; it expires there", "bmc", b.endpoint.Address, "error", redact(err.Error(), b.endpoint, l.transport.token))
			continue
		}
		ended++
	}
	if ended > 0 {
		c.options.Log.Info("Ended BMC sessions that an earlier manager left", "bmc", b.endpoint.Address, "sessions", ended)
	}
	return ended
}

// sweep ends, after the first login of this process at an address, the sessions that an earlier process left there. Without it: a manager that is
// killed again and again leaves a session at each BMC each time, until the BMC has no slot for anybody. A failure costs nothing but the sessions.
func (c *Client) sweep(b *bmc, l *login) {
	line := c.lineTo(b.endpoint.Address)
	if c.options.Owner == "" && !c.options.ExclusiveAccount || l.path == "" || !line.needsSweep() {
		return
	}
	line.keepSwept()
	collection, _ := l.root.sessions()
	sessions, err := listSessions(l.api, collection)
	if err != nil {
		c.options.Log.Info("The sessions at a BMC cannot be listed: those that an earlier manager left expire there", "bmc", b.endpoint.Address, "error", redact(err.Error(), b.endpoint, l.transport.token))
		return
	}
	c.endLeftSessions(b, l, sessions)
}

// slotsError is returned when every session that the BMC allows is in use, and none of them may be ended.
type slotsError struct {
	refused error
	// note says how many sessions there are and whose.
	note string
}

// Error returns what is known of the sessions and the answer of the BMC.
func (e *slotsError) Error() string { return e.note + "; " + refusalOf(e.refused).Error() }

// Unwrap returns the answer of the BMC.
func (e *slotsError) Unwrap() error { return e.refused }

// freeSlot ends the sessions of this installation that nobody uses at a BMC that has refused one more, and logs in again. Where there are none, or that does
// not help, the credentials are sent with every request until listPause has passed. It returns a *slotsError where the BMC takes none in a request.
//
// Without the latter: monitoring opens sessions and never ends them, and a server cannot be powered off until a person restarts its BMC.
func (c *Client) freeSlot(ctx context.Context, b *bmc, l *login, refused error) error {
	line, now := c.lineTo(b.endpoint.Address), c.options.Clock()
	ended := c.endFormerSessions(ctx, b)
	if ended > 0 {
		if err := c.authenticate(l, line); !isSessionLimit(err) {
			return err
		}
	}
	if note, isRecent := line.slotsNote(now); isRecent {
		return &slotsError{refused: refused, note: note}
	}
	l.transport.isBasic = true
	collection, _ := l.root.sessions()
	sessions, err := listSessions(l.api, collection)
	if ended = 0; err == nil {
		ended = c.endStaleSessions(b, l) + c.endLeftSessions(b, l, sessions)
	}
	if ended > 0 {
		l.transport.isBasic = false
		if again := c.authenticate(l, line); !isSessionLimit(again) {
			return again
		}
		l.transport.isBasic = true
	}
	note := describeSessions(sessions, err, b.endpoint.Username)
	if err != nil {
		l.transport.isBasic = false
		line.keepSlotsNote(note, now)
		return &slotsError{refused: refused, note: note}
	}
	l.isChecked, l.renewAt = true, now.Add(listPause)
	c.options.Log.Warn("No session is to be had, so that the credentials are sent with every request", "bmc", b.endpoint.Address, "sessions", note)
	return nil
}

// endFormerSessions ends the sessions that this process has at the address with former particulars and does not use, and returns how many it ended.
func (c *Client) endFormerSessions(ctx context.Context, b *bmc) (ended int) {
	for _, former := range c.removeSessions(func(key sessionKey, other *session) bool {
		return key != b.key && other.address == b.endpoint.Address && other.inFlight == 0
	}) {
		c.logoutAndLog(ctx, former)
		if former.path != "" {
			ended++
		}
	}
	return ended
}

// endStaleSessions ends the sessions that this process could not end before, and returns how many it ended.
func (c *Client) endStaleSessions(b *bmc, l *login) (ended int) {
	line := c.lineTo(b.endpoint.Address)
	for _, path := range line.takeStale() {
		_, err := l.api.Delete(path)
		switch {
		case err == nil:
			ended++
		case statusOf(err) != http.StatusNotFound:
			line.keepStale(path)
		}
	}
	return ended
}

// describeSessions says how many sessions are open, and how many of them with the account of the host's Secret. The names of other accounts are
// not said: tenants read the messages of their Machines.
func describeSessions(sessions []listedSession, err error, username string) string {
	const advice = "end some at the BMC, or wait until they expire"
	if err != nil {
		return "all sessions of the BMC are in use, and it does not list them without one; " + advice
	}
	own := 0
	for _, s := range sessions {
		if s.UserName == username {
			own++
		}
	}
	return fmt.Sprintf("all sessions of the BMC are in use: %d, %d of them with the account of this host's Secret, none known to be Ingot's; %s", len(sessions), own, advice)
}

// isSessionLimit reports whether the BMC refused a session because every one that it allows is in use.
func isSessionLimit(err error) bool {
	r := refusalOf(err)
	return r != nil && r.kind() == hardware.SessionsExhausted
}

// isContextRefused reports whether the BMC may have refused a login because of the member Context, which is younger than its schema of sessions.
// Services answer an unknown member with 400 or 422, and some with 405, 500 or 501. An answer that is about the credentials, the sessions or the
// BMC's state is none: a wrong password that is sent twice, or one that is sent to a locked account, brings the account nearer to its lock.
func isContextRefused(err error) bool {
	r := refusalOf(err)
	if r == nil || r.status == http.StatusUnauthorized || r.status == http.StatusForbidden || !r.notBefore.IsZero() {
		return false
	}
	switch r.kind() {
	case hardware.Unauthorized, hardware.SessionsExhausted, hardware.Busy:
		return false
	default:
		return true
	}
}

// asSlotsError returns the *slotsError in the chain of err, or nil.
func asSlotsError(err error) *slotsError {
	var full *slotsError
	if errors.As(err, &full) {
		return full
	}
	return nil
}
