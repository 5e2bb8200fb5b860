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
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// maxBody is far above the largest resource seen (a System of about 60 KiB).
	maxBody = 8 << 20
	// maxRequests bounds one call: an HGX server's whole inventory takes about 300 requests, a collection that links to
	// itself would take for ever.
	maxRequests = 1000
)

var (
	errForeignHost = errors.New("the BMC's answer leads to another host; not followed")
	errTooMany     = fmt.Errorf("the BMC's answers lead to more than %d requests", maxRequests)
	errTooLarge    = fmt.Errorf("the BMC's answer is larger than %d bytes", maxBody)
)

// Call is what one call of the port knows of its requests.
type callState struct {
	requests int
	// retryAfter is the Retry-After header of the last answer.
	retryAfter string
}

type callStateKey struct{}

// WithCall makes a context whose requests count together.
func withCallState(ctx context.Context) (context.Context, *callState) {
	state := &callState{}
	return context.WithValue(ctx, callStateKey{}, state), state
}

// Transport is the way to one BMC: one request at a time, to that host only, each with a time-out, bodies read whole.
type transport struct {
	base    *http.Transport
	scheme  string
	host    string
	gate    chan struct{}
	timeout time.Duration
	// Token is sent as X-Auth-Token once there is a session.
	token string
}

// New makes the way to the endpoint. Whoever shares the gate, a channel with room for one, takes turns.
func newTransport(e hardware.Endpoint, gate chan struct{}, timeout time.Duration) (*transport, error) {
	address, err := url.Parse(e.Address)
	if err != nil {
		return nil, errMalformed
	}
	return &transport{base: newHTTPTransport(e, timeout), scheme: address.Scheme, host: address.Host, gate: gate, timeout: timeout}, nil
}

// CloseIdleConnections closes what is kept open for further requests.
func (w *transport) CloseIdleConnections() { w.base.CloseIdleConnections() }

func newHTTPTransport(e hardware.Endpoint, timeout time.Duration) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: e.InsecureSkipVerify} // the user's explicit opt-out
	if len(e.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(e.CABundle)
	}
	// No proxy: BMC networks are closed, and credentials must not pass through whatever the environment names.
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
	ctx := req.Context()
	state, ok := ctx.Value(callStateKey{}).(*callState)
	if !ok {
		state = &callState{}
	}
	// gofish joins links to the address as text, so that a link like "@elsewhere/" would carry the token away.
	if req.URL.Scheme != w.scheme || req.URL.Host != w.host || req.URL.User != nil {
		return nil, errForeignHost
	}
	if state.requests++; state.requests > maxRequests {
		return nil, errTooMany
	}
	select {
	case w.gate <- struct{}{}:
		defer func() { <-w.gate }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	out := req.Clone(ctx)
	if w.token != "" {
		out.Header.Set("X-Auth-Token", w.token)
	}
	resp, err := w.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	_ = resp.Body.Close() // the body is read or broken; closing cannot tell more
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	if len(body) > maxBody {
		return nil, errTooLarge
	}
	state.retryAfter = resp.Header.Get("Retry-After")
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.Request = req
	return resp, nil
}
