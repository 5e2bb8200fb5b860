package agentlogs

import (
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// Log is the end of the log of one boot of an agent.
type Log struct {
	// HostUID, Namespace and Name identify the host.
	HostUID, Namespace, Name string
	// Attempt and Boot say whose log it is.
	Attempt int64
	Boot    int
	// End is the length of the whole log, of which Text is the end.
	End  int64
	Text string
	// At is when the last chunk was received.
	At time.Time

	// isAsked is true when the agent was asked for what came before its first chunk.
	isAsked bool
}

// IsOlder reports whether the log is of an earlier boot than the other, or shorter.
func (l Log) IsOlder(other Log) bool {
	switch {
	case l.Attempt != other.Attempt:
		return l.Attempt < other.Attempt
	case l.Boot != other.Boot:
		return l.Boot < other.Boot
	}
	return l.End < other.End
}

// add adds a chunk and returns the offset that is wanted next. What was received before is left out. Secrets are replaced, also where a secret
// begins in one chunk and ends in the next.
func (l *Log) add(chunk protocol.LogChunk, secrets []string) (next int64) {
	if l.End == 0 && chunk.Offset > 0 {
		// Another replica has received what came before, or this one was started again.
		if wanted := max(chunk.Oldest, chunk.Offset-protocol.MaxLog, 0); wanted < chunk.Offset && !l.isAsked {
			l.isAsked = true
			return wanted
		}
		l.End = chunk.Offset
	}
	switch {
	case chunk.Offset > l.End && chunk.Oldest <= l.End:
		return l.End
	case chunk.Offset > l.End:
		if chunk.Oldest < chunk.Offset {
			return chunk.Oldest
		}
		l.Text += lostLine(chunk.Offset - l.End)
		l.End = chunk.Offset
	}
	known := l.End - chunk.Offset
	if known >= int64(len(chunk.Text)) {
		return l.End
	}
	added := chunk.Text[known:]
	l.End += int64(len(added))
	l.Text += input.Text(added)
	for _, secret := range secrets {
		l.Text = strings.ReplaceAll(l.Text, secret, "[secret]")
	}
	l.Text = end(l.Text)
	return l.End
}

func lostLine(bytes int64) string { return fmt.Sprintf("[%d bytes of the log are lost]\n", bytes) }

// end returns the last lines of the text that are kept.
func end(text string) string {
	if len(text) <= protocol.MaxLog {
		return text
	}
	text = text[len(text)-protocol.MaxLog:]
	if _, rest, found := strings.Cut(text, "\n"); found {
		return rest
	}
	return strings.ToValidUTF8(text, "")
}
