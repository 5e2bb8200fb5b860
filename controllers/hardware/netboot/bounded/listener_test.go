package bounded

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// hall serves a file of 8 MiB within the limits.
type hall struct {
	listener *Listener
	address  string
	content  []byte
	log      *bytes.Buffer
	now      time.Time
}

func newHall(t *testing.T, limits Limits) *hall {
	t.Helper()
	h := &hall{content: make([]byte, 8<<20), log: &bytes.Buffer{}, now: time.Unix(1e9, 0)}
	_, _ = rand.Read(h.content) // it never fails
	path := filepath.Join(t.TempDir(), "initrd")
	if err := os.WriteFile(path, h.content, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.address = listener.Addr().String()
	h.listener = New(listener, limits, func() time.Time { return h.now }, slog.New(slog.NewTextHandler(h.log, nil)))
	server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, err := os.Open(path)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		if r.URL.Path == "/copied" { // through the program's memory
			_, _ = io.Copy(struct{ io.Writer }{w}, file)
			return
		}
		http.ServeContent(w, r, "initrd", time.Time{}, file)
	}), slog.New(slog.DiscardHandler))
	server.ReadHeaderTimeout = time.Second
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(h.listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return h
}

func (h *hall) get(path string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	response, err := client.Get("http://" + h.address + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Equal(got, h.content) {
		err = fmt.Errorf("%d bytes differ", len(got))
	}
	return err
}

// ask sends a request and reads nothing of the answer.
func (h *hall) ask(t *testing.T, path string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", h.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return connection
}

func (h *hall) open() int {
	h.listener.mu.Lock()
	defer h.listener.mu.Unlock()
	return h.listener.total
}

func (h *hall) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 2000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never: %s; %d are open", what, h.open())
}

func TestWhoTakesNothingIsLetGoAndWhoReadsSlowlyIsServed(t *testing.T) {
	limits := Limits{Connections: 100, PerSource: 100, Chunk: 64 << 10, Progress: 400 * time.Millisecond}
	for _, path := range []string{"/file", "/copied"} {
		h := newHall(t, limits)
		for range 20 {
			h.ask(t, path)
		}
		slow := h.ask(t, path)
		if err := h.get(path); err != nil {
			t.Errorf("%s beside 20 that read nothing: %v", path, err)
		}
		// 64 KiB in a tenth of a second: more slowly than the server could, and faster than it must be.
		read, part := 0, make([]byte, 64<<10)
		for range 8 {
			n, err := io.ReadFull(slow, part)
			if read += n; err != nil {
				t.Errorf("%s: a slow reader is let go after %d bytes: %v", path, read, err)
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		_ = slow.Close()
		h.await(t, "those that read nothing are let go", func() bool { return h.open() == 0 })
	}
}

func TestThereAreNoMoreThanTheLimitsAndRoomIsGivenBack(t *testing.T) {
	for name, limits := range map[string]Limits{
		"in all": {Connections: 3, PerSource: 100, Chunk: 1 << 20, Progress: time.Minute}, "of one source": {Connections: 100, PerSource: 3, Chunk: 1 << 20, Progress: time.Minute},
	} {
		h := newHall(t, limits)
		var open []net.Conn
		for range 3 {
			open = append(open, h.ask(t, "/file"))
		}
		h.await(t, name+": three are served", func() bool { return h.open() == 3 })
		for range 50 {
			if err := h.get("/file"); err == nil {
				t.Errorf("%s: a fourth is served", name)
			}
		}
		if lines := strings.Count(h.log.String(), "\n"); lines != 1 {
			t.Errorf("%s: %d lines in the log:\n%s", name, lines, h.log)
		}
		h.now = h.now.Add(time.Minute)
		if err := h.get("/file"); err == nil || !strings.Contains(h.log.String(), "refused=50") {
			t.Errorf("%s: %v; a minute later the log says\n%s", name, err, h.log)
		}
		for _, c := range open {
			_ = c.Close()
		}
		h.await(t, name+": all have left", func() bool { return h.open() == 0 && len(h.listener.open) == 0 })
		if err := h.get("/file"); err != nil {
			t.Errorf("%s: after they have left: %v", name, err)
		}
	}
}

// TestAFewSourcesKeepNobodyOut: four neighbours take every place, and a server boots.
func TestAFewSourcesKeepNobodyOut(t *testing.T) {
	h := newHall(t, Limits{Connections: 40, PerSource: 20, Chunk: 1 << 20, Progress: time.Minute})
	dial := func(source string) net.Conn {
		t.Helper()
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
		c, err := from.Dial("tcp", h.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for i := range 40 {
		dial(fmt.Sprintf("127.0.0.%d", 2+i%4))
	}
	h.await(t, "every place is taken", func() bool { return h.open() == 40 })
	if err := h.get("/file"); err != nil {
		t.Errorf("a server that has no connection yet: %v", err)
	}
	h.await(t, "one of theirs has ended", func() bool { return h.open() == 39 })
	// Each of those who have as many as any other gets no place of another.
	dial("127.0.0.2")
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.3")}}
	if c, err := from.Dial("tcp", h.address); err == nil { // it may hear of it at once
		defer c.Close()
	}
	h.await(t, "they have no more than before", func() bool { return h.open() == 40 })
}

func TestAHeaderOfTenMegabytesAndHalfAnOneEnd(t *testing.T) {
	h := newHall(t, Limits{Connections: 100, PerSource: 100, Chunk: 1 << 20, Progress: time.Minute})
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			connection, err := net.Dial("tcp", h.address)
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			_, _ = fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", strings.Repeat("x", 10<<20)) // the server ends it in the middle
			answer, _ := io.ReadAll(connection)
			if len(answer) > 0 && !bytes.Contains(answer, []byte("431")) {
				t.Errorf("%.80s", answer)
			}
		})
	}
	half, err := net.Dial("tcp", h.address)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	_, _ = io.WriteString(half, "GET / HTTP/1.1\r\nHo")
	group.Wait()
	h.await(t, "all have ended", func() bool { return h.open() == 0 })
}

func TestASourceIsAnAddressOrANetworkOfIPv6(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.7:80": "10.0.0.7/32", "[::ffff:10.0.0.7]:80": "10.0.0.7/32", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64",
	} {
		parsed, err := netip.ParseAddrPort(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := sourceOf(net.TCPAddrFromAddrPort(parsed)); got.String() != want {
			t.Errorf("%s: %s", address, got)
		}
	}
	if got := sourceOf(&net.UnixAddr{Name: "x"}); got.IsValid() {
		t.Errorf("a socket of this machine: %s", got)
	}
}
