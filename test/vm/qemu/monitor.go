package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// monitor is a connection to QEMU's machine protocol (docs/interop/qmp-spec).
type monitor struct {
	conn   net.Conn
	lines  *bufio.Scanner
	mu     sync.Mutex
	writer *json.Encoder
}

// connectTimeout is how long QEMU may take to listen.
const connectTimeout = 20 * time.Second

// openMonitor connects and leaves the mode of capabilities, before which no command is accepted.
func openMonitor(ctx context.Context, socket string) (*monitor, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var conn net.Conn
	for {
		var err error
		if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("QEMU's monitor: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	m := &monitor{conn: conn, lines: bufio.NewScanner(conn), writer: json.NewEncoder(conn)}
	if err := m.execute("qmp_capabilities"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return m, nil
}

// execute sends a command without arguments. Its answer is read by isEndedByReset.
func (m *monitor) execute(command string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writer.Encode(map[string]string{"execute": command})
}

// isEndedByReset reads events until QEMU ends, and reports whether the guest has reset itself.
func (m *monitor) isEndedByReset() bool {
	isReset := false
	for m.lines.Scan() {
		var message struct {
			Event string
			Data  struct{ Reason string }
		}
		if json.Unmarshal(m.lines.Bytes(), &message) == nil && message.Event == "SHUTDOWN" {
			isReset = message.Data.Reason == "guest-reset"
		}
	}
	// The connection is of no use any more, whatever ended it.
	_ = m.conn.Close()
	return isReset
}
