package relay

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"
)

// again is the pause before the boot service is tried again.
const again = 20 * time.Millisecond

// Balance starts what stands before the boot service's replicas, on a loopback port: while none listens a request waits, and a read
// whose connection breaks is sent again (nginx's proxy_next_upstream). A report that breaks is the agent's to repeat.
func Balance(service string) *httptest.Server {
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		for {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil || !pause(ctx) {
				return conn, err
			}
		}
	}}
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: service}) },
		Transport: rereading{transport}, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	})
}

// rereading repeats reads.
type rereading struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t rereading) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		response, err := t.next.RoundTrip(r)
		if err == nil || r.Method != http.MethodGet || !pause(r.Context()) {
			return response, err
		}
	}
}

// pause returns false when there is no time left.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(again):
		return true
	}
}
