package agent

import (
	"bytes"
	"context"
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
)

const (
	// callTime bounds one try of a call to the service.
	callTime = 30 * time.Second
	// giveUpAfter bounds all tries of one call: the service's replicas may be rolled meanwhile.
	giveUpAfter = 15 * time.Minute
	// waitMin and waitMax bound the pause between two tries, which doubles.
	waitMin, waitMax = time.Second, 30 * time.Second
)

// client calls the service with the token.
type client struct {
	config Config
	http   *http.Client
	// deadline is the attempt's; zero before the service has told it.
	deadline time.Time
}

func newClient(config Config) *client {
	calls := *config.HTTP
	// The service redirects nowhere, and the token must not go elsewhere.
	calls.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{config: config, http: &calls}
}

func (c *client) post(ctx context.Context, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the body of %s: %w", path, err)
	}
	return c.retry(ctx, func() error { return c.try(ctx, http.MethodPost, path, data, into) })
}

func (c *client) get(ctx context.Context, path string, into any) error {
	return c.retry(ctx, func() error { return c.try(ctx, http.MethodGet, path, nil, into) })
}

// retry repeats the call while trying again can help and the attempt has time.
func (c *client) retry(ctx context.Context, call func() error) error {
	end := c.config.Clock.Now().Add(giveUpAfter)
	if !c.deadline.IsZero() && c.deadline.Before(end) {
		end = c.deadline
	}
	for wait := waitMin; ; wait = min(2*wait, waitMax) {
		err := call()
		if err == nil || !worthRetrying(err) || ctx.Err() != nil {
			return err
		}
		if c.config.Clock.Now().Add(wait).After(end) {
			return fmt.Errorf("giving up: %w", err)
		}
		c.config.Log.Warn("the boot service does not answer, trying again", "wait", wait, "error", err)
		if sleepErr := c.config.Clock.Sleep(ctx, wait); sleepErr != nil {
			return errors.Join(err, sleepErr)
		}
	}
}

// worthRetrying says whether the same call may succeed later: everything but a refusal for good.
func worthRetrying(err error) bool {
	code := protocol.CodeOf(err)
	return code == "" || code == protocol.Unavailable
}

// try makes the call once.
func (c *client) try(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.config.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return protocol.Refusalf(protocol.BadRequest, "%s: %v", path, err)
	}
	request.Header.Set("Authorization", "Bearer "+c.config.Token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("calling the boot service: %w", err)
	}
	// Nothing more is wanted of a body that was read to its end or given up.
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 300 {
		return refusal(path, response)
	}
	if into == nil {
		return nil
	}
	if err := protocol.Decode(response.Body, protocol.MaxReply, into); err != nil {
		return fmt.Errorf("reading the answer to %s: %w", path, err)
	}
	return nil
}

// refusal reads why the service said no. Something else than the service (a proxy) is worth asking again when it fails.
func refusal(path string, response *http.Response) error {
	var said protocol.Refusal
	if err := protocol.Decode(io.LimitReader(response.Body, protocol.MaxRequest), protocol.MaxRequest, &said); err == nil && said.Code != "" {
		return &said
	}
	if response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests {
		return protocol.Refusalf(protocol.Unavailable, "%s: %s", path, response.Status)
	}
	return protocol.Refusalf(protocol.BadRequest, "%s: %s, which is not the boot service's way of saying no", path, response.Status)
}

// reporter tells the service how far the work is: each change of step at once, bytes every interval. A refusal stops
// the work: whoever refuses has another agent in mind, and two must not write.
type reporter struct {
	client *client
	stop   context.CancelCauseFunc
	ended  chan struct{}

	done, total atomic.Int64

	mu      sync.Mutex // held while a report is under way, so that reports stay in order
	step    hardware.Step
	refusal error
}

// startReporter reports until ctx ends.
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

// enter changes the step and reports it.
func (r *reporter) enter(ctx context.Context, step hardware.Step) {
	r.mu.Lock()
	r.step = step
	r.mu.Unlock()
	r.report(ctx)
}

// report makes one try: a report that is lost is overtaken by the next, and must not hold up the work.
func (r *reporter) report(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	body, err := json.Marshal(protocol.Progress{Step: r.step, DoneBytes: r.done.Load(), TotalBytes: r.total.Load()})
	if err == nil {
		err = r.client.try(ctx, http.MethodPost, protocol.PathProgress, body, nil)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	if worthRetrying(err) {
		r.client.config.Log.Warn("progress not reported", "error", err)
		return
	}
	r.refusal = err
	r.stop(err)
}

func (r *reporter) wait() { <-r.ended }

// refused is the refusal that stopped the work, nil when there was none.
func (r *reporter) refused() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal
}
