package netboot

import (
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
)

// maxLogBody is the maximum body of a chunk: JSON may escape each of its bytes as six.
const maxLogBody = 6*protocol.MaxLogChunk + 1<<10

// serveLog adds a chunk to the log of the agent. The credentials of the request are no part of it.
func (s *Service) serveLog(r agentRequest) (any, error) {
	var chunk protocol.LogChunk
	if err := protocol.Decode(r.Body, maxLogBody, &chunk); err != nil {
		return nil, protocol.Refusalf(protocol.BadRequest, "%v", err)
	}
	if chunk.Oldest < 0 || chunk.Offset < chunk.Oldest || chunk.Offset > maxLogOffset || len(chunk.Text) > protocol.MaxLogChunk {
		return nil, protocol.Refusalf(protocol.BadRequest, "a chunk of %d bytes at %d, of a log from %d on, makes no sense", len(chunk.Text), chunk.Offset, chunk.Oldest)
	}
	if s.options.Logs == nil {
		return protocol.LogReceipt{Next: chunk.Offset + int64(len(chunk.Text))}, nil
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	log := agentlogs.Log{HostUID: r.session.HostUID, Namespace: r.session.Namespace, Name: r.session.Name, Attempt: r.session.Number, Boot: r.session.Boots}
	next, isLimited := s.options.Logs.Add(log, chunk, []string{token, r.Header.Get(protocol.HeaderKey)})
	if isLimited {
		return nil, protocol.Refusalf(protocol.Unavailable, "too many chunks of the log, ask again")
	}
	return protocol.LogReceipt{Next: next}, nil
}

// maxLogOffset is more than any agent logs, and far from where a sum would overflow.
const maxLogOffset = 1 << 40
