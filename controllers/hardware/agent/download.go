package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// maxFailures is how often in a row a download may fail without a byte in between.
const maxFailures = 8

// download reads an image. When the connection breaks or stalls, it continues at the same byte.
type download struct {
	ctx    context.Context
	config Config
	url    string

	body   io.ReadCloser
	cancel context.CancelCauseFunc
	stall  *time.Timer
	// offset is the number of bytes read. total is the size of the file; -1 while unknown.
	offset, total int64
	// etag is the ETag of the file. It prevents that the end of a replaced file is appended to the start of the old one.
	etag string
	// hasNoRanges is true when the server has refused a request for the rest of the file.
	hasNoRanges bool
	failures    int
	// startedAt is when the first request was made.
	startedAt time.Time
}

// errStalled is why a connection was closed on which the server sent nothing for the stall time-out.
var errStalled = errors.New("the server sent nothing until the stall time-out")

// permanentError is an error that a retry does not change.
type permanentError struct{ error }

// startDownload opens the image and returns its download.
func startDownload(ctx context.Context, config Config, imageURL string) (*download, error) {
	d := &download{ctx: ctx, config: config, url: imageURL, total: -1, startedAt: config.Clock.Now()}
	for {
		err := d.openResponse()
		if err == nil {
			return d, nil
		}
		if err := d.waitForRetry(err); err != nil {
			return nil, err
		}
	}
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	for {
		err := error(nil)
		if d.body == nil {
			err = d.openResponse()
		}
		if err == nil {
			d.stall.Reset(d.stallTimeout())
			var n int
			n, err = d.body.Read(p)
			d.stall.Stop()
			d.offset += int64(n)
			if n > 0 {
				d.failures = 0
				return n, nil
			}
			if err == nil {
				continue
			}
			if errors.Is(err, io.EOF) && (d.total < 0 || d.offset >= d.total) {
				return 0, io.EOF
			}
		}
		if err := d.waitForRetry(err); err != nil {
			return 0, err
		}
	}
}

// Close ends the download.
func (d *download) Close() {
	if d.body != nil {
		d.stall.Stop()
		d.cancel(nil)
		// The bytes have been read or are not needed, so an error of closing the body does not matter.
		_ = d.body.Close()
		d.body = nil
	}
}

// waitForRetry waits before the next request. It returns an error when there is none.
func (d *download) waitForRetry(cause error) error {
	d.Close()
	if err := d.ctx.Err(); err != nil {
		return err
	}
	d.failures++
	if permanent := (permanentError{}); errors.As(cause, &permanent) || isCertificateError(cause) || d.failures >= maxFailures || d.isLate() {
		return failuref(hardware.ReasonImageUnreachable, withoutURL(cause), "reading image %s at byte %d", safeURL(d.url), d.offset)
	}
	wait := min(minRetryWait<<(d.failures-1), maxRetryWait)
	d.config.Log.Warn("download broke, going on", "image", safeURL(d.url), "offset", d.offset, "wait", wait, "error", withoutURL(cause))
	return d.config.Clock.Sleep(d.ctx, wait)
}

// isLate reports whether no byte has come within the time for the first one.
func (d *download) isLate() bool {
	return d.offset == 0 && d.config.Clock.Now().Sub(d.startedAt) >= d.config.FirstByteTimeout
}

// stallTimeout returns how long the server may send nothing now. Before the first byte it is not longer than what is left for that byte. Without
// it: a server accepts each connection and sends nothing, the first one ends after a minute, which is before the limit, the second one after two.
func (d *download) stallTimeout() time.Duration {
	if d.offset > 0 {
		return d.config.StallTimeout
	}
	left := d.config.FirstByteTimeout - d.config.Clock.Now().Sub(d.startedAt)
	return min(d.config.StallTimeout, max(left, d.config.FirstByteTimeout/8))
}

// isCertificateError reports whether the certificate of the image server cannot be verified, which no retry changes.
func isCertificateError(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError))
}

// openResponse requests the rest of the file.
func (d *download) openResponse() error {
	ctx, cancel := context.WithCancelCause(d.ctx)
	stall := time.AfterFunc(d.stallTimeout(), func() { cancel(errStalled) })
	response, err := d.sendRequest(ctx)
	stall.Stop()
	if err != nil {
		cancel(nil)
		return err
	}
	d.body, d.cancel, d.stall = response.Body, cancel, stall
	switch {
	case response.StatusCode == http.StatusOK:
		d.total = response.ContentLength
		d.etag = response.Header.Get("ETag")
		return d.skipWritten()
	case response.StatusCode == http.StatusPartialContent && d.needsRange():
		var first int64
		if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-", &first); err == nil && first == d.offset {
			return nil
		}
		err = fmt.Errorf("asked for byte %d, the server answered with range %q", d.offset, response.Header.Get("Content-Range"))
	case isTemporary(response.StatusCode):
		return fmt.Errorf("the server answered %s", response.Status)
	default:
		err = fmt.Errorf("the server answered %s", response.Status)
	}
	if !d.needsRange() {
		return permanentError{err}
	}
	// A server or proxy that refuses the range may still serve the whole file.
	d.hasNoRanges = true
	return err
}

// isTemporary reports whether the same request may succeed later.
func isTemporary(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// skipWritten reads the bytes that were written already, from a server that sends the whole file again. The stall timer is off until
// new bytes are read: the deadline of the attempt limits the skipping, and the kernel notices a server that is gone.
//
// Without it: a download breaks at 38 GB. The server has no ranges and begins again. It sends those bytes more slowly, or fetches them first
// from elsewhere, the timer closes the connection, and each further one ends at the same place.
func (d *download) skipWritten() error {
	if _, err := io.CopyN(io.Discard, d.body, d.offset); err != nil {
		return fmt.Errorf("skipping to byte %d: %w", d.offset, err)
	}
	return nil
}

// needsRange reports whether the request is for the rest of the file and not for all of it.
func (d *download) needsRange() bool { return d.offset > 0 && !d.hasNoRanges }

func (d *download) sendRequest(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, permanentError{errors.New("the image's URL is malformed")}
	}
	// The digest is of the file as served, so the server must not compress it.
	request.Header.Set("Accept-Encoding", "identity")
	if d.needsRange() {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.offset))
		if len(d.etag) > 1 && d.etag[0] == '"' {
			request.Header.Set("If-Range", d.etag)
		}
	}
	return d.config.HTTP.Do(request)
}

// safeURL returns the URL without the parts that may contain credentials: user, password and query.
func safeURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return "(malformed URL)"
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}

// withoutURL returns the cause of an error of net/http without the URL, which may contain credentials.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
