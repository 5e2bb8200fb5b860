package ironic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ingot-dev/ingot/api/input"
)

// maxChanges is how many requests that change something are under way at an Ironic at the same time. It answers most of them only when a conductor has a worker
// for them and the node's lock. Without a limit: a hundred Machines are deleted, a hundred power-offs wait for one busy conductor, all of them end unanswered after
// requestTimeout, are made again, and none is ever confirmed.
const maxChanges = 16

// answer are the bounds of one answer: a page of the list of nodes has some hundred, and an inventory what the agent's collectors have found.
var answer = input.Bounds{Bytes: 16 << 20, Depth: 64, Elements: 100_000}

// maxList is how many bytes all pages of one list have: ten thousand nodes with 25 KiB each.
const maxList = 256 << 20

// listBound is the key of what is left of maxList in the context of the requests for one list, which are made one after the other.
type listBound struct{}

// withListBound returns a context for the requests of one list.
func withListBound(ctx context.Context) context.Context {
	left := int64(maxList)
	return context.WithValue(ctx, listBound{}, &left)
}

// takeFromList counts an answer for the list of the context, and returns an error when all its pages together are too large.
func takeFromList(ctx context.Context, n int) error {
	left, isList := ctx.Value(listBound{}).(*int64)
	if !isList {
		return nil
	}
	if *left -= int64(n); *left < 0 {
		return &input.Error{Seen: maxList - *left, Most: maxList, Unit: "bytes in all pages of a list"}
	}
	return nil
}

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
	defer cancel()
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	body, err := input.ReadAll(response.Body, answer.Bytes)
	err = errors.Join(err, response.Body.Close(), input.CheckJSON(body, answer), takeFromList(ctx, len(body)))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
