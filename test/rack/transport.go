package rack

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// corruptAt is the byte of an image that is changed on its way.
const corruptAt = 1 << 16

// agentTransport is the network card under the agent: it sees where the agent is by what it says, and damages what the
// server's faults damage.
type agentTransport struct {
	server *Server
	next   http.RoundTripper
	panics context.CancelCauseFunc

	mu   sync.Mutex
	seen map[Step]bool
}

// RoundTrip implements http.RoundTripper.
func (t *agentTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	before, after := steps(request)
	if err := t.pass(request.Context(), before); err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusMultipleChoices {
		err = t.pass(request.Context(), after)
	}
	if after == StepRegistered && err == nil && t.server.Faults().BootLoop {
		t.panics(errPanic)
		err = errPanic
	}
	if err != nil {
		_ = response.Body.Close() // it is not wanted any more
		return nil, err
	}
	if request.Method == http.MethodGet && !strings.HasSuffix(request.URL.Path, protocol.PathConfigDrive) && t.server.Faults().CorruptImage {
		response.Body = &corrupted{ReadCloser: response.Body}
	}
	return response, nil
}

// pass marks a step the first time.
func (t *agentTransport) pass(ctx context.Context, step Step) error {
	t.mu.Lock()
	first := step != "" && !t.seen[step]
	t.seen[step] = true
	t.mu.Unlock()
	if !first {
		return nil
	}
	return t.server.step(ctx, step)
}

// steps are those that a request stands for: one when it is sent, one when it was answered.
func steps(request *http.Request) (before, after Step) {
	switch path := request.URL.Path; {
	case strings.HasSuffix(path, protocol.PathRegister):
		return "", StepRegistered
	case strings.HasSuffix(path, protocol.PathResult):
		return "", StepReported
	case strings.HasSuffix(path, protocol.PathProgress) && request.GetBody != nil:
		body, err := request.GetBody()
		if err != nil {
			return "", ""
		}
		var progress protocol.Progress
		// What the agent sends is the service's to judge.
		_ = json.NewDecoder(body).Decode(&progress)
		return map[hardware.Step]Step{
			hardware.StepWriting: StepWriting, hardware.StepErasing: StepErasing, hardware.StepVerifying: StepVerifying,
		}[progress.Step], ""
	}
	return "", ""
}

// corrupted turns one bit of a body.
type corrupted struct {
	io.ReadCloser
	at int64
}

// Read implements io.Reader.
func (c *corrupted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	// The last byte of a short body, or the one at corruptAt.
	if at := corruptAt - c.at; at >= 0 && at < int64(n) {
		p[at] ^= 1
	} else if err == io.EOF && n > 0 && c.at < corruptAt {
		p[n-1] ^= 1
	}
	c.at += int64(n)
	return n, err
}
