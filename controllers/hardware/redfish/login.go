package redfish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"
)

// defaultSessions is the path of the collection of sessions where the root does not name it.
const defaultSessions = "/redfish/v1/SessionService/Sessions"

// login is the result of a login. Except for system it does not change.
type login struct {
	transport *transport
	api       *gofish.APIClient
	root      rootLinks
	// path is the resource of the session, which logout deletes.
	path string
	// isChecked is true where the BMC accepted the credentials at the login. A request that is refused with other credentials is not sent
	// again, because BMCs lock the account after three failures.
	isChecked bool
	// renewAt is when a session is asked for again; zero unless the credentials are sent with every request because all sessions of the BMC are in use.
	renewAt time.Time
	// system is the path of the system that was found, so that only the first call searches. It is guarded by Client.mu.
	system string
}

// rootLinks are the links of the service root that are used. A BMC that needs a restart may have none of them.
type rootLinks struct {
	Systems        schemas.Link
	Managers       schemas.Link
	Chassis        schemas.Link
	SessionService schemas.Link
	Links          struct{ Sessions schemas.Link }
	// Oem is the vendors' own.
	Oem json.RawMessage
	// ProtocolFeaturesSupported says which queries the BMC answers.
	ProtocolFeaturesSupported json.RawMessage
}

// sessions returns the path of the collection of sessions, and whether the root names it.
func (r rootLinks) sessions() (path string, isNamed bool) {
	switch {
	case r.Links.Sessions != "":
		return r.Links.Sessions.String(), true
	case r.SessionService != "":
		return strings.TrimRight(r.SessionService.String(), "/") + "/Sessions", true
	}
	return defaultSessions, false
}

// logIn opens a session at the BMC, or prepares to send the credentials with every request where the BMC has no sessions.
func (c *Client) logIn(ctx context.Context, b *bmc) (*login, error) {
	w, err := newTransport(b.endpoint, c.lineTo(b.endpoint.Address), c.options)
	if err != nil {
		return nil, err
	}
	api, err := newAPIClient(ctx, b.endpoint.Address, w)
	if err != nil {
		return nil, err
	}
	l := &login{transport: w, api: api}
	// The root can be read without credentials. A BMC that demands them even there is asked for a session at the default path.
	if err := getJSON(api, schemas.DefaultServiceRoot, &l.root); err != nil && statusOf(err) != http.StatusUnauthorized {
		return nil, err
	}
	err = c.authenticate(l, c.lineTo(b.endpoint.Address))
	if isSessionLimit(err) {
		err = c.freeSlot(ctx, b, l, err)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// authenticate makes a session that is marked as this installation's, or one without the mark where the BMC refuses that.
func (c *Client) authenticate(l *login, line *line) error {
	if c.options.Owner == "" || !line.canTakeContext() {
		return l.authenticate("")
	}
	err := l.authenticate(c.options.Owner)
	if !isContextRefused(err) {
		return err
	}
	if err := l.authenticate(""); err != nil {
		return err // what failed was not the mark alone, and the next login tries it again
	}
	line.keepContextRefused()
	return nil
}

// newAPIClient returns gofish's client with the transport. gofish reads the service root to make one and fails when any member of it has an
// unexpected type. So it is given an empty root here, and the root is read afterwards with the members that are used.
func newAPIClient(ctx context.Context, address string, w *transport) (*gofish.APIClient, error) {
	api, err := gofish.ConnectContext(ctx, gofish.ClientConfig{
		Endpoint: address, HTTPClient: &http.Client{Transport: emptyRoot{}}, NoModifyTransport: true, ReuseConnections: true,
	})
	if err != nil {
		return nil, err
	}
	api.HTTPClient = &http.Client{Transport: w}
	return api, nil
}

// emptyRoot answers every request with an empty object and sends nothing.
type emptyRoot struct{}

// RoundTrip implements http.RoundTripper.
func (emptyRoot) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: req, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// authenticate makes a session with the Context, if there is one. Where the BMC has no sessions, the credentials are sent with every request (Basic authentication).
//
// Where the root names no sessions, the credentials are in the header of this request too. Example: a service without sessions answers 401
// to every request without that header. If the header were left out, right credentials would be taken for wrong ones.
func (l *login) authenticate(owner string) error {
	endpoint := l.transport.endpoint
	sessions, isNamed := l.root.sessions()
	// A login that is sent twice makes a second session at worst, which a caller's next try would make too.
	headers := map[string]string{headerRepeatable: "1"}
	if !isNamed {
		headers["Authorization"] = basicAuthorization(endpoint.Username, endpoint.Password)
	}
	request := map[string]string{"UserName": endpoint.Username, "Password": endpoint.Password}
	if owner != "" {
		request["Context"] = owner
	}
	resp, err := l.api.PostWithHeaders(sessions, request, headers)
	if isSessionLimit(err) {
		// It is not asked whether the service is switched off. Without it: a BMC that takes no credentials in a request answers that question with
		// 401, and a right Secret is blamed because all sessions are in use.
		return err
	}
	if owner != "" && isContextRefused(err) {
		// It is not concluded that there are no sessions. Without it: a BMC that answers a login with a Context by 405 or 501 is sent the credentials in
		// each request, which it may not take, and every call fails although a login without the Context works.
		return err
	}
	isDisabled, disabledErr := l.readSessionsDisabled(err)
	if statusOf(disabledErr) == http.StatusUnauthorized {
		return disabledErr // the session was refused in general, and this for the credentials
	}
	if isMissing(err) || isDisabled {
		l.transport.isBasic, l.isChecked = true, !isNamed
		return nil
	}
	if err != nil {
		return err
	}
	defer schemas.DeferredCleanupHTTPResponse(resp)
	l.transport.token, l.isChecked = resp.Header.Get("X-Auth-Token"), true
	if l.transport.token == "" {
		return fmt.Errorf("%w: the new session has no X-Auth-Token", errMalformed)
	}
	l.path = sessionPath(resp)
	return nil
}

// readSessionsDisabled returns whether the BMC refused a session because its service of sessions is switched off (ServiceEnabled is false), which
// the schema gives no status for. A 401 is about the credentials and is believed.
func (l *login) readSessionsDisabled(refused error) (isDisabled bool, err error) {
	status := statusOf(refused)
	if l.root.SessionService == "" || status < http.StatusBadRequest || status == http.StatusUnauthorized || isMissing(refused) {
		return false, nil
	}
	l.transport.isBasic = true
	defer func() { l.transport.isBasic = false }()
	var service struct{ ServiceEnabled *bool }
	err = getJSON(l.api, l.root.SessionService.String(), &service)
	return err == nil && service.ServiceEnabled != nil && !*service.ServiceEnabled, err
}

// basicAuthorization returns the value of the header Authorization for the credentials.
func basicAuthorization(username, password string) string {
	req := http.Request{Header: http.Header{}}
	req.SetBasicAuth(username, password)
	return req.Header.Get("Authorization")
}

// dropLogin forgets a login that the BMC refuses although it is new, and does not log in again for a while. It ends the session at the BMC,
// so that repeated calls do not use up the sessions there.
func (c *Client) dropLogin(ctx context.Context, b *bmc, s *session, l *login) {
	c.mu.Lock()
	c.refusedUntil[b.key] = c.options.Clock().Add(c.options.CredentialBackoff)
	c.mu.Unlock()
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return
	}
	if s.login == l {
		c.endLogin(ctx, s)
	}
}

// endLogin ends a login that the BMC has refused. A BMC that refuses a session in passing still counts it among the few that it allows. The
// caller holds s.lock.
func (c *Client) endLogin(ctx context.Context, s *session) {
	l := s.login
	s.login = nil
	c.keepPath(s, "") // what is left of it belongs to nobody
	switch err := l.end(ctx, s.address); {
	case errors.Is(err, errNotKnown):
		c.lineTo(s.address).keepStale(l.path)
	case err != nil:
		c.noteNotEnded(s.address, l, err)
	}
}

// noteNotEnded logs that a session was not ended, and keeps it for a time at which all sessions are in use.
func (c *Client) noteNotEnded(address string, l *login, err error) {
	if l != nil {
		c.lineTo(address).keepStale(l.path)
	}
	c.options.Log.Info("BMC session not ended; it expires there", "bmc", address, "error", err.Error())
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

// getJSON reads a resource and decodes it.
func getJSON(api *gofish.APIClient, path string, into any) error {
	raw, _, err := readRaw(api, path)
	if err != nil {
		return err
	}
	// The decoder reads the first value only: some BMCs send an error and a resource in one body.
	return json.NewDecoder(bytes.NewReader(raw)).Decode(into)
}
