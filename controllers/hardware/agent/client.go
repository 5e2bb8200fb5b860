package agent

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

const (
	// callTimeout is the time-out of one call to the boot service.
	callTimeout = 30 * time.Second
	// retryTimeout is how long a failed call is repeated, for example while the replicas of the boot service are updated.
	retryTimeout = 15 * time.Minute
	// refusedTimeout is how long a boot service is asked again whose certificate was refused: a neighbour that answers in its place may go away.
	refusedTimeout = 2 * time.Minute
	// minRetryWait and maxRetryWait are the limits of the wait between two calls, which doubles each time.
	minRetryWait, maxRetryWait = time.Second, 30 * time.Second
)

// client calls the boot service with the token and the key.
type client struct {
	config Config
	http   *http.Client
	// key is the key of this agent in hexadecimal digits.
	key string
	// deadline is the deadline of the attempt; zero before the registration.
	deadline time.Time
}

// newClient returns a client with a new key. The key is made at random for every run, so that no other program can have it.
func newClient(config Config) (*client, error) {
	key := make([]byte, protocol.KeyBytes)
	if _, err := io.ReadFull(config.Random, key); err != nil {
		return nil, fmt.Errorf("making the agent's key: %w", err)
	}
	calls, err := clientOfPins(config)
	if err != nil {
		return nil, err
	}
	// The boot service does not redirect, and the token must not be sent to another server.
	calls.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{config: config, http: calls, key: hex.EncodeToString(key)}, nil
}

func (c *client) post(ctx context.Context, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the body of %s: %w", path, err)
	}
	return c.retry(ctx, func() error { return c.tryOnce(ctx, http.MethodPost, path, data, into) })
}

func (c *client) get(ctx context.Context, path string, into any) error {
	return c.retry(ctx, func() error { return c.tryOnce(ctx, http.MethodGet, path, nil, into) })
}

// retry repeats the call while its error is retryable, until retryTimeout or the deadline of the attempt. What is not made yet is asked for
// until the deadline: the tenant's API server may not answer for long, and the boot service does.
func (c *client) retry(ctx context.Context, call func() error) error {
	end := c.endOfRetries(c.config.Clock.Now())
	for wait := minRetryWait; ; wait = min(2*wait, maxRetryWait) {
		err := call()
		if err == nil || !isRetryable(err) || ctx.Err() != nil {
			return err
		}
		now := c.config.Clock.Now()
		if protocol.CodeOf(err) == protocol.NotYet {
			end = c.endOfRetries(now)
		}
		if refused := (*pin.RefusedError)(nil); errors.As(err, &refused) && now.Add(refusedTimeout).Before(end) {
			end = now.Add(refusedTimeout)
		}
		if now.Add(wait).After(end) {
			return fmt.Errorf("giving up: %w", err)
		}
		c.config.Log.Warn("the boot service has no answer, trying again", "wait", wait, "error", err)
		if sleepErr := c.config.Clock.Sleep(ctx, wait); sleepErr != nil {
			return errors.Join(err, sleepErr)
		}
	}
}

// endOfRetries returns when a call that fails from now on is repeated no more.
func (c *client) endOfRetries(now time.Time) time.Time {
	end := now.Add(retryTimeout)
	if !c.deadline.IsZero() && c.deadline.Before(end) {
		return c.deadline
	}
	return end
}

// isRetryable reports whether the same call may succeed later. Only a refusal other than Unavailable and NotYet is final.
func isRetryable(err error) bool {
	code := protocol.CodeOf(err)
	return code == "" || code == protocol.Unavailable || code == protocol.NotYet
}

// tryOnce makes the call once.
func (c *client) tryOnce(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.config.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return protocol.Refusalf(protocol.BadRequest, "%s: %v", path, err)
	}
	request.Header.Set("Authorization", "Bearer "+c.config.Token)
	request.Header.Set(protocol.HeaderKey, c.key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("calling the boot service: %w", err)
	}
	// The body has been read as far as it is needed, so an error of closing it does not matter.
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 300 {
		return decodeRefusal(path, response)
	}
	if into == nil {
		return nil
	}
	if err := protocol.Decode(response.Body, protocol.MaxReply, into); err != nil {
		return fmt.Errorf("reading the answer to %s: %w", path, err)
	}
	return nil
}

// decodeRefusal returns the error for a response that is not a success. A response that is not from the boot service (a proxy) is
// retryable for 5xx and 429.
func decodeRefusal(path string, response *http.Response) error {
	var refusal protocol.Refusal
	if err := protocol.Decode(io.LimitReader(response.Body, protocol.MaxRequest), protocol.MaxRequest, &refusal); err == nil && refusal.Code != "" {
		return &refusal
	}
	if response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests {
		return protocol.Refusalf(protocol.Unavailable, "%s: %s", path, response.Status)
	}
	return protocol.Refusalf(protocol.BadRequest, "%s: %s, which is not the boot service's way of saying no", path, response.Status)
}

// reporter reports the progress to the boot service: a new step at once, bytes every interval. A refusal stops the operation.
// Example: the attempt is cancelled while the BMC does not respond, so that the server keeps running. If the agent went on, it would
// finish an image that nobody wants any more, and the disk would boot it.
type reporter struct {
	client *client
	stop   context.CancelCauseFunc
	ended  chan struct{}

	done, total atomic.Int64

	mu      sync.Mutex // held while a report is sent, so that reports stay in order
	step    hardware.Step
	refusal error
}

// startReporter starts a reporter that runs until ctx ends.
func startReporter(ctx context.Context, client *client, interval time.Duration, stop context.CancelCauseFunc) *reporter {
	r := &reporter{client: client, stop: stop, ended: make(chan struct{}), step: hardware.StepRegistered}
	go func() {
		defer close(r.ended)
		for client.config.Clock.Sleep(ctx, max(interval, 10*time.Millisecond)) == nil {
			r.report(ctx)
		}
	}()
	return r
}

// enterStep sets the step and reports it.
func (r *reporter) enterStep(ctx context.Context, step hardware.Step) {
	r.mu.Lock()
	r.step = step
	r.mu.Unlock()
	r.report(ctx)
}

// report sends the progress once. A lost report is not repeated, because the next one replaces it and the operation must not wait.
func (r *reporter) report(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	body, err := json.Marshal(protocol.Progress{Step: r.step, DoneBytes: r.done.Load(), TotalBytes: r.total.Load()})
	if err == nil {
		err = r.client.tryOnce(ctx, http.MethodPost, protocol.PathProgress, body, nil)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	if isRetryable(err) {
		r.client.config.Log.Warn("progress not reported", "error", err)
		return
	}
	r.refusal = err
	r.stop(err)
}

// wait returns when the reporter has ended.
func (r *reporter) wait() { <-r.ended }

// refusalError returns the refusal that stopped the operation; nil when there was none.
func (r *reporter) refusalError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal
}
