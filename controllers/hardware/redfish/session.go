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

// session is an open session at one BMC.
type session struct {
	address string
	// lock lets one goroutine log in; a channel, so that the others can give up waiting.
	lock chan struct{}

	// Under Client.mu:
	usedAt   time.Time
	inFlight int

	// Under lock:
	login *login
}

// login is what a login yields. It does not change.
type login struct {
	transport *transport
	api       *gofish.APIClient
	root      rootLinks
	// path is the session's resource, deleted at logout.
	path string
	// systems remembers which system was found, so that only the first call searches. Under Client.mu.
	system string
}

// rootLinks are the members of the service root that we follow.
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

// conn is one call's view of a session.
type conn struct {
	bmc   *bmc
	login *login
	// api carries the call's context.
	api *gofish.APIClient
}

// do runs one call of the port: with a session, again once with a new one when the BMC has forgotten it, and with
// every failure, a panic in the parser included, as a *hardware.Error.
func (b *bmc) do(ctx context.Context, op string, work func(*conn) error) error {
	ctx, state := withCallState(ctx)
	s, err := b.client.acquire(b)
	if err != nil {
		return classifyError(op, b.endpoint, err, state, "")
	}
	defer b.client.release(s)
	var used *login
	for {
		var l *login
		fresh := false
		if err := recoverPanic(func() (err error) { l, fresh, err = b.client.open(ctx, b, s, used); return err }); err != nil {
			return classifyError("open session", b.endpoint, err, state, "")
		}
		err := recoverPanic(func() error { return work(&conn{bmc: b, login: l, api: l.api.WithContext(ctx)}) })
		if err == nil {
			return nil
		}
		if !fresh && used == nil && statusOf(err) == http.StatusUnauthorized {
			used = l
			continue
		}
		return classifyError(op, b.endpoint, err, state, l.transport.token)
	}
}

// acquire finds or makes the pool's entry for the BMC, not logged in yet.
func (c *Client) acquire(b *bmc) (*session, error) {
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

func (c *Client) release(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.inFlight--
	s.usedAt = c.options.Clock()
}

// open returns the session's login, and logs in when there is none or the one there is the stale one. fresh tells that
// this call logged in.
func (c *Client) open(ctx context.Context, b *bmc, s *session, stale *login) (l *login, fresh bool, err error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if s.login != nil && s.login != stale {
		return s.login, false, nil
	}
	if s.login != nil {
		s.login.transport.CloseIdleConnections()
		s.login = nil
	}
	if err := c.heldBack(b); err != nil {
		return nil, false, err
	}
	l, err = c.logIn(ctx, b)
	if err != nil {
		c.remember(b, err)
		return nil, false, err
	}
	s.login = l
	// Sessions with former credentials at this address have no future, and BMCs allow few.
	for _, old := range c.take(func(key sessionKey, other *session) bool {
		return key != b.key && other.address == s.address && other.inFlight == 0
	}) {
		c.logoutQuietly(ctx, old)
	}
	return l, true, nil
}

// heldBack refuses credentials that the BMC refused a moment ago.
func (c *Client) heldBack(b *bmc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.refused[b.key]
	if !ok {
		return nil
	}
	if c.options.Clock().Before(until) {
		return errCredentialsRefused
	}
	delete(c.refused, b.key)
	return nil
}

func (c *Client) remember(b *bmc, err error) {
	if status := statusOf(err); status != http.StatusUnauthorized && status != http.StatusForbidden {
		return
	}
	now := c.options.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, until := range c.refused {
		if !now.Before(until) {
			delete(c.refused, key)
		}
	}
	c.refused[b.key] = now.Add(c.options.CredentialBackoff)
}

func (c *Client) logIn(ctx context.Context, b *bmc) (*login, error) {
	c.mu.Lock()
	gate := c.gate(b.endpoint.Address)
	c.mu.Unlock()
	w, err := newTransport(b.endpoint, gate, c.options.Timeout)
	if err != nil {
		return nil, err
	}
	api, err := gofish.ConnectContext(ctx, gofish.ClientConfig{
		Endpoint: b.endpoint.Address, HTTPClient: &http.Client{Transport: w, CheckRedirect: followReads}, NoModifyTransport: true, ReuseConnections: true,
	})
	if err != nil {
		return nil, err
	}
	l := &login{transport: w, api: api}
	if err := fetch(api, schemas.DefaultServiceRoot, &l.root); err != nil {
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

// followReads keeps a change from being followed: a redirected POST becomes a GET, whose success would say nothing.
func followReads(_ *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// sessionPath is where the session can be deleted: Location, or the body's @odata.id where a BMC leaves that out.
func sessionPath(resp *http.Response) string {
	if location, err := url.Parse(resp.Header.Get("Location")); err == nil && location.Path != "" {
		return location.RequestURI()
	}
	var body struct {
		ID string `json:"@odata.id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return "" // nothing to log out of; the session expires at the BMC
	}
	return body.ID
}

// logout ends the session at the BMC. A session that is gone there is no error.
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

// fetch reads a resource into a plain value.
func fetch(api *gofish.APIClient, path string, into any) error {
	resp, err := api.Get(path)
	if err != nil {
		return err
	}
	defer schemas.DeferredCleanupHTTPResponse(resp)
	return json.NewDecoder(resp.Body).Decode(into)
}
