package ironic

import (
	"context"
	"io"
	"net/http"
	"time"
)

// maxChanges is how many requests that change something are under way at an Ironic at the same time. It answers most of them only when a conductor has a worker
// for them and the node's lock. Without a limit: a hundred Machines are deleted, a hundred power-offs wait for one busy conductor, all of them end unanswered after
// requestTimeout, are made again, and none is ever confirmed.
const maxChanges = 16

// limitedTransport gives each request its time-out from when it is sent, and has those that change something wait until one of the slots is free. Reads do not
// wait: the list of the nodes tells what the changes have done.
type limitedTransport struct {
	next    http.RoundTripper
	slots   chan struct{}
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		select {
		case t.slots <- struct{}{}:
			defer func() { <-t.slots }()
		case <-request.Context().Done():
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, request.Context().Err()
		}
	}
	ctx, cancel := context.WithTimeout(request.Context(), t.timeout)
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = limitedBody{response.Body, cancel}
	return response, nil
}

// limitedBody ends the time-out of its request when it is closed.
type limitedBody struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements io.Closer.
func (b limitedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
