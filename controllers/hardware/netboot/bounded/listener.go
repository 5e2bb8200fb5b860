package bounded

import (
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits of a listener. All are required.
type Limits struct {
	// Connections is how many there are at a time, and PerSource how many from one address; an IPv6 network of 64 bits is one.
	Connections, PerSource int
	// Chunk is how many bytes a client must take within Progress. The time in which nothing is sent to it does not count.
	Chunk    int64
	Progress time.Duration
}

// OfControlPlane returns the limits of what API servers, kubelets and readers of metrics ask.
func OfControlPlane() Limits {
	return Limits{Connections: 256, PerSource: 64, Chunk: 256 << 10, Progress: 30 * time.Second}
}

// Default returns the limits of the boot service. A BMC that reads a medium at 10 KB a second is served; two thousand connections with their buffers have about
// 100 MiB.
func Default() Limits {
	return Limits{Connections: 2048, PerSource: 512, Chunk: 256 << 10, Progress: 30 * time.Second}
}

// Listener is a net.Listener within limits. It is safe for concurrent use.
type Listener struct {
	net.Listener
	limits Limits
	clock  func() time.Time
	log    *slog.Logger

	mu    sync.Mutex
	total int
	// open has the connections of each source, the oldest first.
	open map[netip.Prefix][]*conn
	// refused is how many were refused since the last line in the log, which was written at loggedAt.
	refused  int
	loggedAt time.Time
}

// New returns the listener within the limits. What is refused is logged once a minute.
func New(listener net.Listener, limits Limits, clock func() time.Time, log *slog.Logger) *Listener {
	return &Listener{Listener: listener, limits: limits, clock: clock, log: log, open: map[netip.Prefix][]*conn{}}
}

// Accept implements net.Listener. A connection for which there is no room is closed.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted, listener: l, source: sourceOf(accepted.RemoteAddr())}
		displaced, isAdmitted := l.admit(c)
		if displaced != nil {
			displaced.reset()
		}
		if isAdmitted {
			return c, nil
		}
		reset(accepted)
	}
}

// admit gives the connection a place. Where all are taken it is that of the oldest connection of the source that has most, so that a few sources with many
// connections keep nobody else out; a source that has as many as any other gets none.
func (l *Listener) admit(c *conn) (displaced *conn, isAdmitted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := len(l.open[c.source])
	if own >= l.limits.PerSource {
		l.refuse(c.source, own)
		return nil, false
	}
	if l.total >= l.limits.Connections {
		crowd := l.largest()
		if len(l.open[crowd]) <= own+1 {
			l.refuse(c.source, own)
			return nil, false
		}
		displaced = l.open[crowd][0]
		l.refuse(crowd, len(l.open[crowd]))
	}
	l.total++
	l.open[c.source] = append(l.open[c.source], c)
	return displaced, true
}

// largest returns the source that has most connections.
func (l *Listener) largest() (most netip.Prefix) {
	for source, open := range l.open {
		if len(open) > len(l.open[most]) {
			most = source
		}
	}
	return most
}

// refuse counts and logs that a connection of the source was refused or ended.
func (l *Listener) refuse(source netip.Prefix, open int) {
	l.refused++
	if now := l.clock(); l.loggedAt.IsZero() || now.Sub(l.loggedAt) >= time.Minute || now.Before(l.loggedAt) {
		l.log.Warn("connections are refused or ended, because there are too many", "from", source.Addr().String(), "fromThere", open, "mostFromOne", l.limits.PerSource, "inAll", l.total,
			"most", l.limits.Connections, "refused", l.refused)
		l.loggedAt, l.refused = now, 0
	}
}

// leave gives the place back.
func (l *Listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	open := l.open[c.source]
	if at := slices.Index(open, c); at >= 0 {
		open = slices.Delete(open, at, at+1)
	}
	if l.open[c.source] = open; len(open) == 0 {
		delete(l.open, c.source)
	}
}

// reset closes a connection so that its client hears of it at once and nothing is left here. Nobody is told of its failure: the client has nothing.
func reset(c net.Conn) {
	if tcp, isTCP := c.(*net.TCPConn); isTCP {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// sourceOf returns the address, or the network of 64 bits that an IPv6 address is in; the zero value for what is neither.
func sourceOf(address net.Addr) netip.Prefix {
	parsed, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := parsed.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// conn is a connection that ends when its client takes nothing.
type conn struct {
	net.Conn
	listener *Listener
	source   netip.Prefix
	closed   sync.Once

	mu sync.Mutex
	// left is how much of the chunk is not taken yet; 0: none has begun.
	left int64
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closed.Do(func() { c.listener.leave(c) })
	return c.Conn.Close()
}

// reset is Close, of which the client hears at once.
func (c *conn) reset() {
	c.closed.Do(func() { c.listener.leave(c) })
	reset(c.Conn)
}

// Read implements net.Conn. What the client sends begins another answer.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = 0
	return n, err
}

// begin returns how much may be sent by the deadline that the connection has, and begins a chunk where none has begun.
func (c *conn) begin() (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 {
		return c.left, nil
	}
	c.left = c.listener.limits.Chunk
	return c.left, c.Conn.SetWriteDeadline(time.Now().Add(c.listener.limits.Progress))
}

func (c *conn) took(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = max(c.left-n, 0)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		left, err := c.begin()
		if err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[:min(left, int64(len(p)))])
		c.took(int64(n))
		written, p = written+n, p[n:]
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// ReadFrom implements io.ReaderFrom, so that the kernel copies a file to the connection (sendfile(2)).
func (c *conn) ReadFrom(from io.Reader) (written int64, err error) {
	// The kernel copies from a file in one LimitedReader, and not in two.
	whole, isLimited := from.(*io.LimitedReader)
	if !isLimited {
		whole = &io.LimitedReader{R: from, N: math.MaxInt64}
	}
	for {
		left, err := c.begin()
		if err != nil {
			return written, err
		}
		n, err := io.Copy(c.Conn, &io.LimitedReader{R: whole.R, N: min(left, whole.N)})
		c.took(n)
		written, whole.N = written+n, whole.N-n
		if err != nil || n < left {
			return written, err
		}
	}
}
