package rack

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// corruptAt is the offset of the byte of an image that CorruptImage changes.
const corruptAt = 1 << 16

// agentTransport is the network of the agent. It derives the server's step from the agent's requests, and applies the faults of the network.
type agentTransport struct {
	server *Server
	next   *http.Transport
	panics context.CancelCauseFunc

	mu     sync.Mutex
	marked map[Step]bool
}

// WithTLS implements agent.TLSTransport.
func (t *agentTransport) WithTLS(settings *tls.Config) http.RoundTripper {
	next := t.next.Clone()
	next.Proxy, next.TLSClientConfig = nil, settings
	return &agentTransport{server: t.server, next: next, panics: t.panics, marked: map[Step]bool{}}
}

// RoundTrip implements http.RoundTripper.
func (t *agentTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	before, after := stepsOf(request)
	if err := t.markStep(request.Context(), before); err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusMultipleChoices {
		err = t.markStep(request.Context(), after)
	}
	if after == StepRegistered && err == nil && t.server.Faults().BootLoop {
		t.panics(errPanic)
		err = errPanic
	}
	if err != nil {
		_ = response.Body.Close() // nobody reads it
		return nil, err
	}
	if request.Method == http.MethodGet && !strings.HasSuffix(request.URL.Path, protocol.PathConfigDrive) && t.server.Faults().CorruptImage {
		response.Body = &corruptBody{ReadCloser: response.Body}
	}
	return response, nil
}

// markStep records a step the first time that it is reached.
func (t *agentTransport) markStep(ctx context.Context, step Step) error {
	t.mu.Lock()
	first := step != "" && !t.marked[step]
	t.marked[step] = true
	t.mu.Unlock()
	if !first {
		return nil
	}
	return t.server.step(ctx, step)
}

// stepsOf returns the steps that a request stands for: the one that is reached when it is sent, and the one when it is answered.
func stepsOf(request *http.Request) (before, after Step) {
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
		// The service checks what the agent sends.
		_ = json.NewDecoder(body).Decode(&progress)
		return map[hardware.Step]Step{
			hardware.StepWriting: StepWriting, hardware.StepErasing: StepErasing, hardware.StepVerifying: StepVerifying,
		}[progress.Step], ""
	}
	return "", ""
}

// corruptBody flips one bit of a body.
type corruptBody struct {
	io.ReadCloser
	at int64
}

// Read implements io.Reader.
func (c *corruptBody) Read(p []byte) (int, error) {
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
