package redfish

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/stmcginnis/gofish"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// session is the session at one BMC with one set of credentials.
type session struct {
	address string
	// lock allows one goroutine to log in or out. It is a channel, so that the others can stop waiting when their context ends.
	lock chan struct{}

	// The next three are guarded by Client.mu. path is the resource of the session that is open, or the last one.
	usedAt   time.Time
	inFlight int
	path     string

	// login is guarded by lock; nil before the first login.
	login *login
}

// bmc implements hardware.BMC for one endpoint.
type bmc struct {
	client   *Client
	endpoint hardware.Endpoint
	key      sessionKey
}

// conn is a session in use by one call.
type conn struct {
	bmc   *bmc
	login *login
	// ctx is the context of the call, and api the gofish client with it.
	ctx context.Context
	api *gofish.APIClient
	// reread is how often a resource was read again because it may show a change late.
	reread int
}

// call runs work with a session. When the BMC has lost the session, it runs work once more with a new one; when the BMC refuses a new
// session, it runs work once more with the same one, because some BMCs do so in passing. It returns every failure as a *hardware.Error,
// including a panic in the parser.
func (b *bmc) call(ctx context.Context, op string, work func(*conn) error) error {
	return b.callWithSecret(ctx, op, "", work)
}

// callWithSecret does the same for work that sends a secret, which no error repeats.
//
// Without it: a BMC refuses the URL of an image and quotes it in its answer, the answer becomes the message of the host, and everybody who may read
// hosts can get the token of the agent.
func (b *bmc) callWithSecret(ctx context.Context, op, secret string, work func(*conn) error) error {
	ctx, state := withCallState(ctx)
	state.secret = secret
	s, err := b.client.acquireSession(b)
	if err != nil {
		return classifyError(op, b.endpoint, err, state, "", b.client.options.Clock())
	}
	defer b.client.releaseSession(s)
	var lost *login
	isRenewed, isRepeated := false, false
	for {
		var l *login
		fresh := false
		if err := recoverPanic(func() (err error) { l, fresh, err = b.client.ensureLogin(ctx, b, s, lost); return err }); err != nil {
			return classifyError("open session", b.endpoint, err, state, "", b.client.options.Clock())
		}
		err := recoverPanic(func() error { return work(&conn{bmc: b, login: l, ctx: ctx, api: l.api.WithContext(ctx)}) })
		switch {
		case err == nil:
			return nil
		case !isLoginRefused(err):
		case !fresh && !isRenewed && !isRepeated:
			lost, isRenewed = l, true
			continue
		case l.isChecked && !isRepeated:
			lost, isRepeated = nil, true
			continue
		default:
			b.client.dropLogin(ctx, b, s, l)
		}
		return classifyError(op, b.endpoint, err, state, l.transport.token, b.client.options.Clock())
	}
}

// isLoginRefused reports whether the BMC refused the session, or the credentials that were sent in its place.
func isLoginRefused(err error) bool {
	r := refusalOf(err)
	if r == nil || r.kind() != hardware.Unauthorized {
		return false
	}
	return r.status == http.StatusUnauthorized || hasMessage(err, "NoValidSession", "AuthenticationTokenRequired")
}

// acquireSession returns the session for the BMC from the pool, and adds it when it is missing. It does not log in.
func (c *Client) acquireSession(b *bmc) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	s, ok := c.sessions[b.key]
	if !ok {
		s = &session{address: b.endpoint.Address, lock: make(chan struct{}, 1)}
		c.sessions[b.key] = s
	}
	s.inFlight++
	s.usedAt = c.options.Clock()
	return s, nil
}

// releaseSession marks the end of a call that uses the session.
func (c *Client) releaseSession(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.inFlight--
	s.usedAt = c.options.Clock()
}

// ensureLogin returns the login of the session. It logs in when there is no login, or when it is the one that the BMC has lost. fresh
// is true when this call has logged in.
func (c *Client) ensureLogin(ctx context.Context, b *bmc, s *session, staleLogin *login) (l *login, fresh bool, err error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if s.login != nil && s.login != staleLogin && !s.login.mustRenew(c.options.Clock()) {
		return s.login, false, nil
	}
	if s.login != nil {
		c.endLogin(ctx, s)
	}
	if err := c.checkRefused(b); err != nil {
		return nil, false, err
	}
	l, err = c.logIn(ctx, b)
	if err != nil {
		c.recordRefusal(b, err)
		return nil, false, err
	}
	s.login = l
	c.keepPath(s, l.path)
	c.sweep(b, l)
	// Sessions with former credentials at this address are not used any more, and BMCs allow few sessions.
	c.endFormerSessions(ctx, b)
	return l, true, nil
}

// mustRenew reports whether a session is to be asked for again, because there was none to be had.
func (l *login) mustRenew(now time.Time) bool { return !l.renewAt.IsZero() && !now.Before(l.renewAt) }

// keepPath keeps where the session is, so that it is not taken for one that an earlier process left.
func (c *Client) keepPath(s *session, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.path = path
}

// checkRefused refuses credentials that the BMC has recently refused.
func (c *Client) checkRefused(b *bmc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.refusedUntil[b.key]
	if !ok {
		return nil
	}
	if c.options.Clock().Before(until) {
		return errCredentialsRefused
	}
	delete(c.refusedUntil, b.key)
	return nil
}

// recordRefusal records that the BMC refused the credentials, if that is the error, and removes expired records.
func (c *Client) recordRefusal(b *bmc, err error) {
	if r := refusalOf(err); r == nil || r.kind() != hardware.Unauthorized {
		return
	}
	now := c.options.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, until := range c.refusedUntil {
		if !now.Before(until) {
			delete(c.refusedUntil, key)
		}
	}
	c.refusedUntil[b.key] = now.Add(c.options.CredentialBackoff)
}

// logout ends the session at the BMC and returns its login. It succeeds when the session no longer exists there.
func (s *session) logout(ctx context.Context) (*login, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l := s.login
	if l == nil {
		return nil, nil
	}
	s.login = nil
	err := l.end(ctx, s.address)
	if errors.Is(err, errNotKnown) {
		err = nil
	}
	return l, err
}

// end deletes the session at the BMC. errNotKnown says that the BMC does not know it, or says so in passing.
func (l *login) end(ctx context.Context, address string) error {
	defer l.transport.CloseIdleConnections()
	if l.transport.isBasic {
		return nil
	}
	if l.path == "" {
		return errors.New("the BMC did not say where its session is")
	}
	ctx, state := withCallState(ctx)
	api := l.api.WithContext(ctx)
	err := recoverPanic(func() error { _, err := api.Delete(l.path); return err })
	switch statusOf(err) {
	case http.StatusUnauthorized:
		return errNotKnown
	case http.StatusNotFound:
		return nil
	}
	if err != nil {
		return classifyError("end session", hardware.Endpoint{Address: address}, err, state, l.transport.token, time.Time{})
	}
	return nil
}
