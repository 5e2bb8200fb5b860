package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// maxLogCalls is how many chunks are sent at once. What is left is sent after the next interval.
const maxLogCalls = 8

// logSender sends the agent's log to the boot service. A chunk that is not received is sent again later; nothing waits for it.
type logSender struct {
	client *client
	ended  chan struct{}
	next   int64
}

// startLogSender starts a logSender that runs until ctx ends.
func startLogSender(ctx context.Context, client *client, interval time.Duration) *logSender {
	s := &logSender{client: client, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for {
			s.send(ctx)
			if client.config.Clock.Sleep(ctx, max(interval, 10*time.Millisecond)) != nil {
				return
			}
		}
	}()
	return s
}

// finish sends the rest of the log, once, after the context of the sender has ended.
func (s *logSender) finish(ctx context.Context) {
	<-s.ended
	s.send(ctx)
}

// send sends what is new. An error is not logged: each would be new and would be sent.
func (s *logSender) send(ctx context.Context) {
	for range maxLogCalls {
		if s.client.config.LogChunk == nil || ctx.Err() != nil {
			return
		}
		chunk := s.client.config.LogChunk(s.next)
		if chunk.Text == "" {
			return
		}
		body, err := json.Marshal(chunk)
		if err != nil {
			return
		}
		var receipt protocol.LogReceipt
		if s.client.tryOnce(ctx, http.MethodPost, protocol.PathLog, body, &receipt) != nil {
			return
		}
		s.next = receipt.Next
	}
}
