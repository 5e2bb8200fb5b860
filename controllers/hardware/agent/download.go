package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// maxBreaks is how often in a row a download may break without a byte in between.
const maxBreaks = 8

// download reads an image. When the connection breaks or stalls it goes on where it was.
type download struct {
	ctx    context.Context
	config Config
	url    string

	body   io.ReadCloser
	cancel context.CancelFunc
	stall  *time.Timer
	// offset counts the bytes read, total is the file's size or -1.
	offset, total int64
	// validator is the file's ETag: a file replaced meanwhile must not be glued to the old one's start.
	validator string
	breaks    int
}

// permanentError is a download's end that trying again does not change.
type permanentError struct{ error }

// startDownload opens the image.
func startDownload(ctx context.Context, config Config, imageURL string) (*download, error) {
	d := &download{ctx: ctx, config: config, url: imageURL, total: -1}
	for {
		err := d.open()
		if err == nil {
			return d, nil
		}
		if err := d.pause(err); err != nil {
			return nil, err
		}
	}
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	for {
		err := error(nil)
		if d.body == nil {
			err = d.open()
		}
		if err == nil {
			d.stall.Reset(d.config.StallTimeout)
			var n int
			n, err = d.body.Read(p)
			d.stall.Stop()
			d.offset += int64(n)
			if n > 0 {
				d.breaks = 0
				return n, nil
			}
			if err == nil {
				continue
			}
			if errors.Is(err, io.EOF) && (d.total < 0 || d.offset >= d.total) {
				return 0, io.EOF
			}
		}
		if err := d.pause(err); err != nil {
			return 0, err
		}
	}
}

// Close ends the download.
func (d *download) Close() {
	if d.body != nil {
		d.stall.Stop()
		d.cancel()
		// Whatever closing an answer to a GET says, its bytes were read or are not wanted.
		_ = d.body.Close()
		d.body = nil
	}
}

// pause waits before the next try, or says that there is none.
func (d *download) pause(cause error) error {
	d.Close()
	if err := d.ctx.Err(); err != nil {
		return err
	}
	d.breaks++
	if permanent := (permanentError{}); errors.As(cause, &permanent) || d.breaks >= maxBreaks {
		return failf(hardware.ReasonImageUnreachable, withoutURL(cause), "reading image %s at byte %d", safeURL(d.url), d.offset)
	}
	wait := min(waitMin<<(d.breaks-1), waitMax)
	d.config.Log.Warn("download broke, going on", "image", safeURL(d.url), "offset", d.offset, "wait", wait, "error", withoutURL(cause))
	return d.config.Clock.Sleep(d.ctx, wait)
}

// open asks for the rest of the file.
func (d *download) open() error {
	ctx, cancel := context.WithCancel(d.ctx)
	stall := time.AfterFunc(d.config.StallTimeout, cancel)
	response, err := d.request(ctx)
	if err != nil {
		stall.Stop()
		cancel()
		return err
	}
	d.body, d.cancel, d.stall = response.Body, cancel, stall
	switch {
	case response.StatusCode == http.StatusOK:
		d.total = response.ContentLength
		d.validator = response.Header.Get("ETag")
		if _, err := io.CopyN(io.Discard, response.Body, d.offset); err != nil {
			return fmt.Errorf("skipping to byte %d: %w", d.offset, err)
		}
		return nil
	case response.StatusCode == http.StatusPartialContent && d.offset > 0:
		var first int64
		if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-", &first); err != nil || first != d.offset {
			return permanentError{fmt.Errorf("asked for byte %d, the server answered with range %q", d.offset, response.Header.Get("Content-Range"))}
		}
		return nil
	case response.StatusCode >= 500, response.StatusCode == http.StatusTooManyRequests, response.StatusCode == http.StatusRequestTimeout:
		return fmt.Errorf("the server answered %s", response.Status)
	default:
		return permanentError{fmt.Errorf("the server answered %s", response.Status)}
	}
}

func (d *download) request(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, permanentError{errors.New("the image's URL is malformed")}
	}
	// The digest is of the file as served: no encoding may come between.
	request.Header.Set("Accept-Encoding", "identity")
	if d.offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.offset))
		if len(d.validator) > 1 && d.validator[0] == '"' {
			request.Header.Set("If-Range", d.validator)
		}
	}
	return d.config.HTTP.Do(request)
}

// safeURL is the URL without what may be a credential: user, password, query.
func safeURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return "(malformed URL)"
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}

// withoutURL takes the URL, which may hold a credential, out of an error of net/http.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
