package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"
)

// maxBody is the size in bytes to which the body of a counted request is limited. API servers have the same limit.
const maxBody = 3 << 20

// errKilled is returned for the answer to a manager that was killed.
var errKilled = errors.New("the manager was killed")

// Proxy is an HTTPS reverse proxy for one API server or BMC.
type Proxy struct {
	name     string
	steps    *Steps
	server   *httptest.Server
	upstream *url.URL
	// next sends requests to the upstream.
	next *http.Transport
}

// Listen starts a Proxy on a loopback port. authority is the PEM-encoded CA of the upstream.
func (s *Steps) Listen(name, upstream string, authority []byte) (*Proxy, error) {
	to, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("relay %s: %w", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("relay %s: the authority of %s holds no certificate", name, upstream)
	}
	f := &Proxy{name: name, steps: s, upstream: to, next: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableCompression: true,
	}}
	quiet := log.New(io.Discard, "", 0) // connections of a killed process break
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: f.next, FlushInterval: -1, ErrorLog: quiet, ModifyResponse: f.handleResponse,
		// A connection that breaks on one side breaks on the other.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(proxy, w, r) }))
	f.server.Config.ErrorLog, f.server.EnableHTTP2 = quiet, true
	f.server.StartTLS()
	return f, nil
}

// URL returns the URL at which the Proxy listens.
func (f *Proxy) URL() string { return f.server.URL }

// CA returns the PEM-encoded certificate that all Proxies use.
func (f *Proxy) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
}

// Close closes the Proxy and all its connections.
func (f *Proxy) Close() {
	f.server.CloseClientConnections()
	f.server.Close()
	f.next.CloseIdleConnections()
}

// countedRequest is a counted request that was forwarded.
type countedRequest struct {
	request *Request
	// kill is set when the manager is to be killed once the request has taken effect.
	kill func()
}

type countedRequestKey struct{}

func (f *Proxy) serve(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	if !isCounted(r) {
		proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // the request did not arrive completely
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	request, when, kill := f.steps.add(Request{Target: f.name, Method: r.Method, Path: r.URL.Path, Body: body})
	if kill != nil && when == Before {
		kill()
		panic(http.ErrAbortHandler)
	}
	// A request that was forwarded takes effect even if its sender is killed.
	ctx := context.WithValue(context.WithoutCancel(r.Context()), countedRequestKey{}, &countedRequest{request, kill})
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// handleResponse records the upstream's answer before the manager receives it, and kills the manager where that is due.
func (f *Proxy) handleResponse(response *http.Response) error {
	p, counted := response.Request.Context().Value(countedRequestKey{}).(*countedRequest)
	if !counted {
		return nil
	}
	f.steps.setStatus(p.request, response.StatusCode)
	if p.kill == nil {
		return nil
	}
	p.kill()
	return errKilled
}

// sessionsPath is the end of the path at which a BMC's sessions are opened. The sessions are below it.
const sessionsPath = "/SessionService/Sessions"

// retryInterval is the pause before the boot service is tried again.
const retryInterval = 20 * time.Millisecond

// StartBalancer starts a load balancer for the boot service's replicas on a loopback port. While no replica listens, a
// request waits; a GET whose connection breaks is sent again (nginx's proxy_next_upstream). A broken report is not
// repeated: the agent does that.
func StartBalancer(service string) *httptest.Server {
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		for {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil || pause(ctx) != nil {
				return conn, err
			}
		}
	}}
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: service}) },
		Transport: retryingTransport{transport}, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	})
}

// retryingTransport repeats GET requests that fail.
type retryingTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t retryingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		response, err := t.next.RoundTrip(r)
		if err == nil || r.Method != http.MethodGet || pause(r.Context()) != nil {
			return response, err
		}
	}
}

// pause waits for the retry interval. It returns an error when ctx ends.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(retryInterval):
		return nil
	}
}
