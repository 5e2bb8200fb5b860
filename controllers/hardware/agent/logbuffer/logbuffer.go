package logbuffer

import (
	"bytes"
	"strings"
	"sync"

	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// limit is how much of the log is kept, in bytes: four times what the boot service keeps, for a boot service that was away for long.
const limit = 4 * protocol.MaxLog

// Buffer is the end of a log. Each Write is one line or several; its bytes are counted from the start of the log. It is safe for concurrent use.
type Buffer struct {
	mu sync.Mutex
	// text is what is kept, and end the number of bytes that were ever written.
	text    []byte
	end     int64
	secrets []string
}

// AddSecret has each later line written without the secret. An empty one changes nothing.
func (b *Buffer) AddSecret(secret string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if secret != "" {
		b.secrets = append(b.secrets, secret)
	}
}

// Write implements io.Writer. It never fails.
func (b *Buffer) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clean := lines
	for _, secret := range b.secrets {
		clean = bytes.ReplaceAll(clean, []byte(secret), []byte("[secret]"))
	}
	b.text = append(b.text, clean...)
	b.end += int64(len(clean))
	if len(b.text) > limit {
		b.text = append([]byte(nil), b.text[len(b.text)-limit/2:]...)
	}
	return len(lines), nil
}

// Chunk returns what was written from the offset on, as far as it is kept and fits a message. It ends with a line where it can.
func (b *Buffer) Chunk(offset int64) protocol.LogChunk {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest := b.end - int64(len(b.text))
	offset = min(max(offset, oldest), b.end)
	text := b.text[offset-oldest:]
	if len(text) > protocol.MaxLogChunk {
		text = text[:protocol.MaxLogChunk]
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			text = text[:i+1]
		}
	}
	// JSON replaces what is not UTF-8 by more bytes, and the offsets would be wrong.
	return protocol.LogChunk{Offset: offset, Oldest: oldest, Text: toASCII(text)}
}

// Tail returns the last lines.
func (b *Buffer) Tail(lines int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := strings.Split(strings.TrimRight(toASCII(b.text), "\n"), "\n")
	return all[max(0, len(all)-lines):]
}

// toASCII returns the text with as many bytes, each of which is printable, a tab or the end of a line.
func toASCII(text []byte) string {
	out := bytes.Clone(text)
	for i, c := range out {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			out[i] = '?'
		}
	}
	return string(out)
}
