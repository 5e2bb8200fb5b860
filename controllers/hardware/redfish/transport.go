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
	// maxBody is far above the largest known resource (a System of about 60 KiB).
	maxBody = 8 << 20
	// maxRequests is the maximum number of requests of one call. The inventory of an HGX server takes about 300 requests; a collection
	// that links to itself would never end.
	maxRequests = 1000
)

var (
	errForeignHost = errors.New("the BMC's answer leads to another host; not followed")
	errTooMany     = fmt.Errorf("the BMC's answers lead to more than %d requests", maxRequests)
	errTooLarge    = fmt.Errorf("the BMC's answer is larger than %d bytes", maxBody)
)

// callState is the state of the requests of one call.
type callState struct {
	requests int
	// retryAfter is the Retry-After header of the last response.
	retryAfter string
}

type callStateKey struct{}

// withCallState returns a context whose requests are counted together.
func withCallState(ctx context.Context) (context.Context, *callState) {
	state := &callState{}
	return context.WithValue(ctx, callStateKey{}, state), state
}

// transport sends requests to one BMC: one at a time, to that host only, and each with a time-out. It reads every body completely.
type transport struct {
	base    *http.Transport
	scheme  string
	host    string
	gate    chan struct{}
	timeout time.Duration
	// token is sent as X-Auth-Token when there is a session.
	token string
}

// newTransport returns a transport to the endpoint. Transports with the same gate, a channel of capacity 1, send one request at a time.
func newTransport(e hardware.Endpoint, gate chan struct{}, timeout time.Duration) (*transport, error) {
	address, err := url.Parse(e.Address)
	if err != nil {
		return nil, errMalformed
	}
	return &transport{base: newHTTPTransport(e, timeout), scheme: address.Scheme, host: address.Host, gate: gate, timeout: timeout}, nil
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
	ctx := req.Context()
	state, ok := ctx.Value(callStateKey{}).(*callState)
	if !ok {
		state = &callState{}
	}
	// gofish joins links to the address as text, so a link such as "@elsewhere/" would send the token to another host.
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
	_ = resp.Body.Close() // the body has been read or is broken, so an error of closing it does not matter
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
