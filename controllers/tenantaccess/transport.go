package tenantaccess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// watchLimit is the longest duration of a watch. It is longer than the 5 to 10 minutes for which client-go requests one. It ends the
// watch of a server that never closes it; otherwise the cache could keep old Nodes for ever after a lost connection.
const watchLimit = 15 * time.Minute

// listFactor is how many times longer a list of thousands of Nodes may take than the request of one object.
const listFactor = 6

// watchPause is how long a watch may send nothing between two events. An API server sends a bookmark about every minute. A watch that
// ends is begun again where it was, so that an early end costs one request.
const watchPause = 5 * time.Minute

// maxHeaderBytes is the limit of the header of a response.
const maxHeaderBytes = 64 << 10

var errNotJSON = errors.New("the server answered in another format than the JSON that was asked for")

var errPaused = errors.New("the watch has sent nothing for a long time")

var errRedirected = errors.New("the server redirects to another address, which is not followed")

var errNoResponse = errors.New("the server accepted the request and did not answer in time")

// newTransport returns the transport of one tenant. No connection is shared with another tenant.
func newTransport(config *rest.Config, allowed []netip.Prefix, timeout time.Duration) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, invalid("its certificates: %w", err)
	}
	dialer, err := newDialer(config.Host, allowed, http.ProxyFromEnvironment, timeout)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		// The operator controls the environment, but not the proxy-url of a kubeconfig.
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: timeout,
		IdleConnTimeout:     90 * time.Second,
		// A header is not counted as a part of the response.
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    4,
		ForceAttemptHTTP2:      true,
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
	// A redirect would lead the manager, with the tenant's credentials, to any address that the tenant names.
	return &http.Client{Transport: &limits, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected }}, nil
}

// deadlines limits every request. The response must begin within responseTimeout and end within totalTimeout, or within watchLimit for
// a watch, and no pause within it may be longer than responseTimeout. http.Client.Timeout cannot be used because it would end watches
// too.
type deadlines struct {
	next            http.RoundTripper
	responseTimeout time.Duration
	totalTimeout    time.Duration
	// weight is the limit of a response as a meter estimates it. Each event of a watch may have maxObjectWeight.
	weight int64
	// account counts what arrives.
	account *account
	// isOptional is true for what the tenant is used without.
	isOptional bool
	// refuse, if set, returns an error if no request may be sent now.
	refuse func() error
	// onResponse, if set, is called when the response to a request begins, or with the error of the request or of the reading of its
	// response.
	onResponse func(path string, err error)
	// onDate, if set, is called with the server's time.
	onDate func(time.Time)
}

// RoundTrip implements http.RoundTripper.
func (d *deadlines) RoundTrip(request *http.Request) (*http.Response, error) {
	if d.refuse != nil {
		if err := d.refuse(); err != nil {
			return nil, err
		}
	}
	isWatch, totalTimeout := request.URL.Query().Has("watch"), d.totalTimeout
	if isWatch {
		totalTimeout = watchLimit
	}
	ctx, cancel := context.WithTimeout(request.Context(), totalTimeout)
	timer := time.AfterFunc(d.responseTimeout, cancel)
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	timer.Stop()
	// One of the two deadlines has passed, and the caller's context has not ended.
	if err != nil && ctx.Err() != nil && request.Context().Err() == nil {
		err = lateError(err, d.responseTimeout)
	}
	if err == nil {
		err = restrict(response)
	}
	d.noteDate(response, err)
	d.report(request, responseError(response, err))
	if err != nil {
		cancel()
		return nil, err
	}
	b := &body{ReadCloser: response.Body, limits: d, request: request, ctx: ctx, cancel: cancel, isWatch: isWatch && response.StatusCode < http.StatusBadRequest, limit: d.weight}
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		b.limit = min(b.limit, maxErrorWeight)
	case isWatch:
		b.limit = maxObjectWeight
	}
	response.Body = b
	return response, nil
}

func (d *deadlines) noteDate(response *http.Response, err error) {
	if err != nil || d.onDate == nil {
		return
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		d.onDate(date)
	}
}

func (d *deadlines) report(request *http.Request, err error) {
	if d.onResponse != nil {
		d.onResponse(request.URL.Path, err)
	}
}

// restrict refuses a response that is not JSON, because its size once it is decoded is not known: two bytes of a protobuf list become
// a kilobyte. It closes the body of a response that it refuses. A refusal may be a text, of
// which only the status counts: it may be one of any server.
//
// It also removes Retry-After. Without that: a tenant answers each request with 429 and an hour, and client-go waits ten times that
// long, with a worker of the controller. Reconciles have their own back-off.
func restrict(response *http.Response) error {
	response.Header.Del("Retry-After")
	mediaType, _, err := mime.ParseMediaType(cmp.Or(response.Header.Get("Content-Type"), runtime.ContentTypeJSON))
	switch {
	case err == nil && mediaType == runtime.ContentTypeJSON, response.StatusCode == http.StatusNoContent:
		return nil
	case response.StatusCode >= http.StatusBadRequest:
		// client-go would quote a text in its error.
		response.Header.Set("Content-Type", runtime.ContentTypeJSON)
		return nil
	}
	return errors.Join(errNotJSON, response.Body.Close())
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

// body is the body of a response. Its Read returns an error when the response is too large or pauses for too long.
type body struct {
	io.ReadCloser
	limits  *deadlines
	request *http.Request
	ctx     context.Context
	cancel  context.CancelFunc
	isWatch bool
	limit   int64

	meter    meter
	failed   error
	isClosed atomic.Bool

	// mu guards received, because a watch is closed while it is read.
	mu sync.Mutex
	// received is what the account counts for this body.
	received int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if b.isWatch {
		// The events before have been decoded, trimmed and passed on: client-go reads again only then.
		_ = b.hold(b.meter.weight)
	}
	pause := b.limits.responseTimeout
	if b.isBetweenEvents() {
		pause = max(pause, watchPause)
	}
	var isPaused atomic.Bool
	timer := time.AfterFunc(pause, func() { isPaused.Store(true); b.cancel() })
	n, err := b.ReadCloser.Read(p)
	timer.Stop()
	if problem := b.problem(err, isPaused.Load()); problem != nil {
		return b.fail(problem)
	}
	if problem := b.count(p[:n]); problem != nil {
		return b.fail(problem)
	}
	if b.isWatch && b.limits.account != nil {
		for _, pace := range []*rate.Limiter{b.limits.account.pace, b.limits.account.shared} {
			if waitErr := pace.WaitN(b.ctx, n); waitErr != nil && err == nil {
				err = waitErr
			}
		}
	}
	return n, err
}

// isBetweenEvents tells whether a watch has sent its last event completely.
func (b *body) isBetweenEvents() bool { return b.isWatch && b.isWhole() }

// isWhole tells whether no object or array is open in what was read. A connection that is closed because the deadline has passed may read
// like the end of the body.
func (b *body) isWhole() bool { return b.meter.depth == 0 && !b.meter.inString }

// problem returns the error of a server that paused for too long or did not end its response in time, and nil for any other result.
func (b *body) problem(err error, isPaused bool) error {
	switch {
	case err == nil || errors.Is(err, io.EOF) && b.isWhole() || b.ctx.Err() == nil || b.request.Context().Err() != nil || b.isClosed.Load():
		return nil
	case b.isBetweenEvents():
		return errPaused
	case isPaused:
		return fmt.Errorf("%w: it paused for %s in the middle of its answer", errNoResponse, b.limits.responseTimeout)
	case b.isWatch:
		return nil
	}
	return fmt.Errorf("%w: its answer had not ended after %s", errNoResponse, b.limits.totalTimeout)
}

// count measures what was read, and returns an error if it is too large.
func (b *body) count(text []byte) error {
	before := b.meter.weight
	if b.isWatch {
		b.meter.heaviest = 0
	}
	b.meter.add(text, b.isWatch)
	if b.meter.heaviest > b.limit {
		what := "one answer takes"
		if b.isWatch {
			what = "one event takes"
		}
		return &tooLargeError{what: fmt.Sprintf("%s more than %s of memory", what, mebibytes(b.limit))}
	}
	if b.limits.account == nil {
		return nil
	}
	if b.isWatch {
		return b.hold(b.meter.heaviest)
	}
	if r, found := b.request.Context().Value(roundKey{}).(*round); found {
		return r.receive(b.limits.account, b.meter.weight-before)
	}
	return b.hold(b.meter.weight)
}

// hold sets what the account counts for this body.
//
// Without it for watches: each of fifty TenantClusters of a namespace sends almost all of an event of eight megabytes, and then a byte every few
// seconds for as long as a watch lasts.
func (b *body) hold(weight int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.account == nil || b.isClosed.Load() {
		return nil
	}
	err := b.limits.receive(weight - b.received)
	if err == nil {
		b.received = weight
	}
	return err
}

// receive adds to what the account counts, or takes away from it, which is never refused.
func (d *deadlines) receive(weight int64) error {
	if d.isOptional {
		return d.account.receiveOptional(weight)
	}
	return d.account.receive(weight)
}

func (b *body) fail(err error) (int, error) {
	b.failed = err
	if !errors.Is(err, errPaused) {
		b.limits.report(b.request, err)
	}
	return 0, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isClosed.Store(true)
	if b.received != 0 {
		_ = b.limits.receive(-b.received)
		b.received = 0
	}
	return b.ReadCloser.Close()
}
