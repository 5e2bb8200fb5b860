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

// watchLimit is longer than the 5 to 10 minutes for which client-go asks a server to keep a watch open: a server that
// never closes one is cut off, so that a lost connection cannot keep old Nodes alive.
const watchLimit = 15 * time.Minute

// listFactor: a list of thousands of Nodes may take longer than one object.
const listFactor = 6

// What one answer may hold, so that no tenant fills the manager's memory. A list of five thousand Nodes has some ten
// megabytes; a watch is a stream of small frames, which client-go bounds.
const (
	maxProbe  = 1 << 20
	maxDirect = 64 << 20
	maxList   = 512 << 20
)

var errTooMuch = errors.New("the server answers with more than is taken from it")

var errSilent = errors.New("the server accepted the request and did not answer in time")

// newTransport makes the connections of one tenant; nothing is shared with another's, so closing them closes all.
func newTransport(config *rest.Config, timeout time.Duration) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, invalid("its certificates: %w", err)
	}
	return &http.Transport{
		// The environment is the operator's own, unlike the kubeconfig's proxy-url.
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: timeout,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 4,
		ForceAttemptHTTP2:   true,
		// A connection whose other end vanished is found by ping, not by the kernel's give-up time.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}, nil
}

// newHTTPClient adds the credentials and the deadlines.
func newHTTPClient(config *rest.Config, transport http.RoundTripper, limits deadlines) (*http.Client, error) {
	authorized, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, invalid("its credentials: %w", err)
	}
	limits.next = authorized
	return &http.Client{Transport: &limits}, nil
}

// deadlines bounds every request: its answer must begin within answer, and end within whole, a watch's within
// watchLimit. http.Client.Timeout cannot do that, for it would end watches too.
type deadlines struct {
	next   http.RoundTripper
	answer time.Duration
	whole  time.Duration
	// size of an answer in bytes; a watch has none.
	size int64
	// began, when set, is told how each answer began; nil error: well.
	began func(path string, err error)
}

// RoundTrip sends one request under its deadlines.
func (d *deadlines) RoundTrip(request *http.Request) (*http.Response, error) {
	whole, size := d.whole, d.size
	if request.URL.Query().Has("watch") {
		whole, size = watchLimit, math.MaxInt64
	}
	ctx, cancel := context.WithTimeout(request.Context(), whole)
	timer := time.AfterFunc(d.answer, cancel)
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	timer.Stop()
	// Whichever of the two deadlines came first, it was ours and not the caller's.
	if err != nil && ctx.Err() != nil && request.Context().Err() == nil {
		err = fmt.Errorf("%w (%s)", errSilent, d.answer)
	}
	if d.began != nil {
		d.began(request.URL.Path, beginning(response, err))
	}
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, left: size, release: cancel}
	return response, nil
}

// beginning: 410 Gone is an answer like another, it asks the watcher to list again.
func beginning(response *http.Response, err error) error {
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest && response.StatusCode != http.StatusGone {
		return &statusError{code: response.StatusCode}
	}
	return nil
}

// statusError is an HTTP status that is no success.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code))
}

func (e *statusError) refused() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}

// body ends with an error after so many bytes, and releases the request's context when it is closed.
type body struct {
	io.ReadCloser
	left    int64
	release func()
}

// Read reads what is left.
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooMuch
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// Close closes the body.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
