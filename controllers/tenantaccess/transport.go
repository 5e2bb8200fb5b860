package tenantaccess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// watchLimit is the longest duration of a watch. It is longer than the 5 to 10 minutes for which client-go requests one. It ends the
// watch of a server that never closes it; otherwise the cache could keep old Nodes for ever after a lost connection.
const watchLimit = 15 * time.Minute

// listFactor is how many times longer a list of thousands of Nodes may take than the request of one object.
const listFactor = 6

// The largest sizes of a response in bytes, so that no tenant fills the memory of the manager. A list of five thousand Nodes has about
// ten megabytes. A watch is a stream of small frames, whose size client-go limits.
const (
	maxProbeBytes  = 1 << 20
	maxDirectBytes = 64 << 20
	maxListBytes   = 512 << 20
)

var errResponseTooLarge = errors.New("the server answers with more than is taken from it")

var errNoResponse = errors.New("the server accepted the request and did not answer in time")

// newTransport returns the transport of one tenant. No connection is shared with another tenant.
func newTransport(config *rest.Config, timeout time.Duration) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, invalid("its certificates: %w", err)
	}
	return &http.Transport{
		// The operator controls the environment, but not the proxy-url of a kubeconfig.
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: timeout,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 4,
		ForceAttemptHTTP2:   true,
		// The ping detects a lost connection earlier than the TCP timeout of the kernel.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}, nil
}

// newHTTPClient returns a client with the credentials of the config and with the deadlines.
func newHTTPClient(config *rest.Config, transport http.RoundTripper, limits deadlines) (*http.Client, error) {
	authorized, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, invalid("its credentials: %w", err)
	}
	limits.next = authorized
	return &http.Client{Transport: &limits}, nil
}

// deadlines limits every request: the response must begin within responseTimeout and end within totalTimeout, or within watchLimit for
// a watch. http.Client.Timeout cannot be used because it would end watches too.
type deadlines struct {
	next            http.RoundTripper
	responseTimeout time.Duration
	totalTimeout    time.Duration
	// size is the limit of a response in bytes. It does not apply to watches.
	size int64
	// onResponse, if set, is called when the response to a request begins, or with the error of the request.
	onResponse func(path string, err error)
}

// RoundTrip implements http.RoundTripper.
func (d *deadlines) RoundTrip(request *http.Request) (*http.Response, error) {
	totalTimeout, size := d.totalTimeout, d.size
	if request.URL.Query().Has("watch") {
		totalTimeout, size = watchLimit, math.MaxInt64
	}
	ctx, cancel := context.WithTimeout(request.Context(), totalTimeout)
	timer := time.AfterFunc(d.responseTimeout, cancel)
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	timer.Stop()
	// One of the two deadlines has passed, and the caller's context has not ended.
	if err != nil && ctx.Err() != nil && request.Context().Err() == nil {
		err = fmt.Errorf("%w (%s)", errNoResponse, d.responseTimeout)
	}
	if d.onResponse != nil {
		d.onResponse(request.URL.Path, responseError(response, err))
	}
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, remaining: size, release: cancel}
	return response, nil
}

// responseError returns the error that a response stands for. 410 Gone is not an error: it makes the watcher list again.
func responseError(response *http.Response, err error) error {
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest && response.StatusCode != http.StatusGone {
		return &statusError{code: response.StatusCode}
	}
	return nil
}

// statusError is an HTTP status that is not a success.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code))
}

func (e *statusError) isDenied() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}

// body is a response body whose Read returns an error after the remaining bytes. Close releases the context of the request.
type body struct {
	io.ReadCloser
	remaining int64
	release   func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.remaining < 0 {
		return 0, errResponseTooLarge
	}
	n, err := b.ReadCloser.Read(p)
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, errResponseTooLarge
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
