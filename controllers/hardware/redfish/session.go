package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// session is the session at one BMC with one set of credentials.
type session struct {
	address string
	// lock allows one goroutine to log in or out. It is a channel, so that the others can stop waiting when their context ends.
	lock chan struct{}

	// The next two are guarded by Client.mu.
	usedAt   time.Time
	inFlight int

	// login is guarded by lock; nil before the first login.
	login *login
}

// login is the result of a login. Except for system it does not change.
type login struct {
	transport *transport
	api       *gofish.APIClient
	root      rootLinks
	// path is the resource of the session, which logout deletes.
	path string
	// system is the path of the system that was found, so that only the first call searches. It is guarded by Client.mu.
	system string
}

// rootLinks are the links of the service root that are used.
type rootLinks struct {
	Systems  schemas.Link
	Managers schemas.Link
	Chassis  schemas.Link
	Links    struct{ Sessions schemas.Link }
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
	// api is the gofish client with the context of the call.
	api *gofish.APIClient
}

// call runs work with a session. When the BMC has lost the session, it runs work once more with a new one. It returns every failure as a
// *hardware.Error, including a panic in the parser.
func (b *bmc) call(ctx context.Context, op string, work func(*conn) error) error {
	ctx, state := withCallState(ctx)
	s, err := b.client.acquireSession(b)
	if err != nil {
		return classifyError(op, b.endpoint, err, state, "")
	}
	defer b.client.releaseSession(s)
	var lost *login
	for {
		var l *login
		fresh := false
		if err := recoverPanic(func() (err error) { l, fresh, err = b.client.ensureLogin(ctx, b, s, lost); return err }); err != nil {
			return classifyError("open session", b.endpoint, err, state, "")
		}
		err := recoverPanic(func() error { return work(&conn{bmc: b, login: l, api: l.api.WithContext(ctx)}) })
		if err == nil {
			return nil
		}
		if !fresh && lost == nil && statusOf(err) == http.StatusUnauthorized {
			lost = l
			continue
		}
		return classifyError(op, b.endpoint, err, state, l.transport.token)
	}
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
	if s.login != nil && s.login != staleLogin {
		return s.login, false, nil
	}
	if s.login != nil {
		s.login.transport.CloseIdleConnections()
		s.login = nil
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
	// Sessions with former credentials at this address are not used any more, and BMCs allow few sessions.
	for _, old := range c.removeSessions(func(key sessionKey, other *session) bool {
		return key != b.key && other.address == s.address && other.inFlight == 0
	}) {
		c.logoutAndLog(ctx, old)
	}
	return l, true, nil
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
	if status := statusOf(err); status != http.StatusUnauthorized && status != http.StatusForbidden {
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

// logIn opens a session at the BMC.
func (c *Client) logIn(ctx context.Context, b *bmc) (*login, error) {
	c.mu.Lock()
	gate := c.addressGate(b.endpoint.Address)
	c.mu.Unlock()
	w, err := newTransport(b.endpoint, gate, c.options.Timeout)
	if err != nil {
		return nil, err
	}
	api, err := gofish.ConnectContext(ctx, gofish.ClientConfig{
		Endpoint: b.endpoint.Address, HTTPClient: &http.Client{Transport: w, CheckRedirect: redirectPolicy}, NoModifyTransport: true, ReuseConnections: true,
	})
	if err != nil {
		return nil, err
	}
	l := &login{transport: w, api: api}
	if err := getJSON(api, schemas.DefaultServiceRoot, &l.root); err != nil {
		return nil, err
	}
	sessions := l.root.Links.Sessions.String()
	if sessions == "" {
		sessions = "/redfish/v1/SessionService/Sessions"
	}
	resp, err := api.Post(sessions, map[string]string{"UserName": b.endpoint.Username, "Password": b.endpoint.Password})
	if err != nil {
		return nil, err
	}
	defer schemas.DeferredCleanupHTTPResponse(resp)
	w.token = resp.Header.Get("X-Auth-Token")
	if w.token == "" {
		return nil, fmt.Errorf("%w: the new session has no X-Auth-Token", errMalformed)
	}
	l.path = sessionPath(resp)
	return l, nil
}

// redirectPolicy follows redirects of GET requests only. net/http turns a redirected POST into a GET, whose success would look like a
// success of the change.
func redirectPolicy(_ *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// sessionPath returns the resource of the new session: the header Location, or @odata.id in the body where a BMC leaves out the header.
func sessionPath(resp *http.Response) string {
	if location, err := url.Parse(resp.Header.Get("Location")); err == nil && location.Path != "" {
		return location.RequestURI()
	}
	var body struct {
		ID string `json:"@odata.id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return "" // the session cannot be deleted; it expires at the BMC
	}
	return body.ID
}

// logout ends the session at the BMC. It succeeds when the session no longer exists there.
func (s *session) logout(ctx context.Context) error {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l := s.login
	if l == nil {
		return nil
	}
	s.login = nil
	defer l.transport.CloseIdleConnections()
	if l.path == "" {
		return errors.New("the BMC did not say where its session is")
	}
	ctx, state := withCallState(ctx)
	api := l.api.WithContext(ctx)
	err := recoverPanic(func() error { _, err := api.Delete(l.path); return err })
	switch statusOf(err) {
	case http.StatusUnauthorized, http.StatusNotFound:
		return nil
	}
	if err != nil {
		return classifyError("end session", hardware.Endpoint{Address: s.address}, err, state, l.transport.token)
	}
	return nil
}

// getJSON reads a resource and decodes it.
func getJSON(api *gofish.APIClient, path string, into any) error {
	resp, err := api.Get(path)
	if err != nil {
		return err
	}
	defer schemas.DeferredCleanupHTTPResponse(resp)
	return json.NewDecoder(resp.Body).Decode(into)
}
