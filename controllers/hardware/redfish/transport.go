package redfish

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// maxRequests is the maximum number of requests of one call. The inventory of an HGX server takes about 300 requests; a collection
	// that links to itself would never end.
	maxRequests = 1000
	// maxRedirects is how many redirects of one request are followed.
	maxRedirects = 5
	// headerRepeatable marks a request that may be sent twice. It is read by net/http and never sent.
	headerRepeatable = "Idempotency-Key"
)

// answer are the bounds of one answer, far above the largest known resource (a System of about 60 KiB, a collection with its members of 2 MiB).
var answer = input.Bounds{Bytes: 8 << 20, Depth: 64, Elements: 200_000}

// byteOrderMark is UTF-8's. JSON must not begin with it, and a reader may ignore it (RFC 8259 8.1).
var byteOrderMark = []byte("\xef\xbb\xbf")

var (
	errForeignHost = errors.New("the BMC's answer leads to another host; not followed")
	errTooMany     = fmt.Errorf("the BMC's answers lead to more than %d requests", maxRequests)
	errRedirects   = fmt.Errorf("the BMC redirects a request more than %d times", maxRedirects)
	errTooLarge    = errors.New("the BMC's answer is too large")
	errEmpty       = errors.New("the BMC answers with success and an empty body, expected a resource: restart the BMC or update its firmware if that stays so")
)

// readRaw returns the text of a resource, and the header of the answer. An empty answer is an error.
func readRaw(api *gofish.APIClient, uri string) ([]byte, http.Header, error) {
	resp, err := api.Get(uri)
	if err != nil {
		return nil, nil, err
	}
	defer schemas.DeferredCleanupHTTPResponse(resp)
	raw, err := io.ReadAll(resp.Body)
	if err == nil && len(bytes.TrimSpace(raw)) == 0 {
		err = errEmpty
	}
	return raw, resp.Header, err
}

// callState is the state of the requests of one call.
type callState struct {
	requests int
	// last is the method and path of the last request.
	last string
	// secret is a part of what the call sends that a BMC may repeat in its answer; empty: there is none.
	secret string
}

// secretOf returns the secret. The receiver may be nil.
func (s *callState) secretOf() string {
	if s == nil {
		return ""
	}
	return s.secret
}

// lastRequest returns the last request as the beginning of an error text. The receiver may be nil.
func (s *callState) lastRequest() string {
	if s == nil || s.last == "" {
		return ""
	}
	return s.last + ": "
}

type callStateKey struct{}

// withCallState returns a context whose requests are counted together.
func withCallState(ctx context.Context) (context.Context, *callState) {
	state := &callState{}
	return context.WithValue(ctx, callStateKey{}, state), state
}

// transport sends requests to one BMC: one at a time, to that host only, and each with a time-out. It reads every body completely, follows
// redirects on the same host, and returns every answer that is not a success as a *refusal.
type transport struct {
	base     *http.Transport
	endpoint hardware.Endpoint
	scheme   string
	host     string
	line     *line
	timeout  time.Duration
	clock    func() time.Time
	// token is sent as X-Auth-Token when there is a session.
	token string
	// hasAnswered is true when the BMC has answered a request, so that its TLS is one that can be used. The line's gate guards it.
	hasAnswered bool
	// isBasic sends the credentials with every request, where the BMC has no sessions.
	isBasic bool
}

// newTransport returns a transport to the endpoint. Transports with the same line send one request at a time.
func newTransport(e hardware.Endpoint, line *line, options Options) (*transport, error) {
	address, err := url.Parse(e.Address)
	if err != nil {
		return nil, errMalformed
	}
	return &transport{
		base: newHTTPTransport(e, options.Timeout), endpoint: e, scheme: address.Scheme, host: canonicalHost(address), line: line,
		timeout: options.Timeout, clock: options.Clock,
	}, nil
}

// canonicalHost returns the host with its port, so that a link with the default port leads to the same host as one without.
func canonicalHost(address *url.URL) string {
	port := address.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[address.Scheme]
	}
	return strings.ToLower(net.JoinHostPort(address.Hostname(), port))
}

// CloseIdleConnections closes the connections that are kept for further requests.
func (w *transport) CloseIdleConnections() { w.base.CloseIdleConnections() }

func newHTTPTransport(e hardware.Endpoint, timeout time.Duration) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: e.InsecureSkipVerify} // the user's explicit opt-out
	if len(e.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(e.CABundle)
	}
	// There is no proxy, because credentials of BMCs must not be sent through a proxy from the environment.
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: timeout,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     30 * time.Second,
	}
}

// RoundTrip implements http.RoundTripper.
func (w *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	state, ok := req.Context().Value(callStateKey{}).(*callState)
	if !ok {
		state = &callState{}
	}
	for range maxRedirects + 1 {
		resp, body, err := w.send(req, state)
		if err != nil {
			return nil, err
		}
		next, err := redirectedRequest(req, resp)
		if err != nil {
			return nil, err
		}
		if next != nil {
			req = next
			continue
		}
		if r := newRefusal(req, resp, body, w.clock()); r != nil {
			w.line.hold(r, redact(r.Error(), w.endpoint, w.token, state.secretOf()))
			return nil, r
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		resp.Request = req
		return resp, nil
	}
	return nil, errRedirects
}

// redirectedRequest returns the request to which an answer redirects, nil when it does not redirect.
//
// Method and body are kept, as RFC 9110 15.4 demands for 307 and 308 and permits for 301 and 302. A POST or PATCH that is answered with 301
// or 302 is followed only to the same path with or without a slash at its end, which is what BMCs mean by it. Example: a BMC redirects
// a reset to its login page, which answers 200. That would look like a server that was powered off.
func redirectedRequest(req *http.Request, resp *http.Response) (*http.Request, error) {
	location, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, nil
	}
	isRead := req.Method == http.MethodGet || req.Method == http.MethodHead
	isSamePath := strings.TrimRight(location.Path, "/") == strings.TrimRight(req.URL.Path, "/")
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound:
		if !isRead && !isSamePath {
			return nil, nil
		}
	default:
		return nil, nil
	}
	next := req.Clone(req.Context())
	next.URL, next.Host = location, ""
	if req.Body == nil {
		return next, nil
	}
	if req.GetBody == nil {
		return nil, nil
	}
	next.Body, err = req.GetBody()
	return next, err
}

// send sends one request and returns the answer with its whole body.
func (w *transport) send(req *http.Request, state *callState) (*http.Response, []byte, error) {
	// gofish joins links to the address as text, so a link such as "@elsewhere/" would send the token to another host.
	if req.URL.Scheme != w.scheme || canonicalHost(req.URL) != w.host || req.URL.User != nil {
		return nil, nil, errForeignHost
	}
	if state.requests++; state.requests > maxRequests {
		return nil, nil, errTooMany
	}
	ctx := req.Context()
	select {
	case w.line.gate <- struct{}{}:
		defer func() { <-w.line.gate }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	// A logout is sent in any case, because it frees one of the few sessions.
	if err := w.line.check(w.clock()); err != nil && req.Method != http.MethodDelete {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	state.last = req.Method + " " + req.URL.Path
	resp, err := w.base.RoundTrip(w.authorize(req.Clone(ctx)))
	if err != nil {
		if !w.hasAnswered {
			err = w.explainHandshake(ctx, err)
		}
		return nil, nil, err
	}
	w.hasAnswered = true
	body, err := readAnswer(resp)
	return resp, body, err
}

// readAnswer reads the body of a response within the bounds.
func readAnswer(resp *http.Response) ([]byte, error) {
	body, err := input.ReadAll(resp.Body, answer.Bytes)
	_ = resp.Body.Close() // the body has been read or is broken, so an error of closing it does not matter
	body = bytes.TrimPrefix(body, byteOrderMark)
	if err == nil {
		err = input.CheckJSON(body, answer)
	}
	switch large := (*input.Error)(nil); {
	case errors.As(err, &large):
		return nil, fmt.Errorf("%w: %w", errTooLarge, large)
	case err != nil:
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	return body, nil
}

// authorize adds the session or the credentials to the request, and allows net/http to send it again where that is safe: when a kept
// connection turns out to be closed by the BMC. Setting a member to the same value twice does no harm, nor does ending a session twice.
func (w *transport) authorize(req *http.Request) *http.Request {
	switch {
	case w.token != "":
		req.Header.Set("X-Auth-Token", w.token)
	case w.isBasic:
		req.SetBasicAuth(w.endpoint.Username, w.endpoint.Password)
	}
	_, isMarked := req.Header[headerRepeatable]
	if isMarked || req.Method == http.MethodPatch || req.Method == http.MethodDelete {
		req.Header[headerRepeatable] = []string{} // with no value net/http does not send the header
	}
	return req
}
