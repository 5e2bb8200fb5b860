package tftp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	pin "github.com/pin/tftp/v3"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	// results are what was counted.
	results map[string]int
}

func (l *lines) count(result string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.results == nil {
		l.results = map[string]int{}
	}
	l.results[result]++
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start serves the files on loopback and returns the address and a function that stops the server.
func start(t *testing.T, files fs.FS) (address string, log *lines, stop func()) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log = &lines{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, conn, files, slog.New(slog.NewTextHandler(log, nil)), log.count) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return conn.LocalAddr().String(), log, stop
}

func TestOnlyTheFilesAreServed(t *testing.T) {
	program := bytes.Repeat([]byte("iPXE"), 5000)
	address, log, stop := start(t, fstest.MapFS{"snponly.efi": {Data: program}, "folder/inside": {Data: []byte("x")}})
	client, err := pin.NewClient(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"snponly.efi", "/snponly.efi", "//snponly.efi", "../../snponly.efi"} {
		transfer, err := client.Receive(name, "octet")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got bytes.Buffer
		if _, err := transfer.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), program) {
			t.Errorf("%s: %d bytes, %v", name, got.Len(), err)
		}
	}
	for _, name := range []string{"", "/", ".", "folder", "/etc/passwd", "../../../etc/passwd", "\x1b[2J", strings.Repeat("a/", 200)} {
		if _, err := client.Receive(name, "octet"); err == nil {
			t.Errorf("%q is served", name)
		}
	}
	if _, err := client.Send("snponly.efi", "octet"); err == nil {
		t.Error("a file can be written")
	}
	stop()
	if want := map[string]int{ResultSent: 4, ResultRefused: 8}; !maps.Equal(log.results, want) {
		t.Errorf("counted %v, expected %v", log.results, want)
	}
	if n := strings.Count(log.String(), "\n"); n != 4 {
		t.Errorf("%d lines in the log, want one for each file that was served:\n%s", n, log)
	}
}

func TestFirmwareThatAsksForTheSizeIsNoError(t *testing.T) {
	address, log, stop := start(t, fstest.MapFS{"snponly.efi": {Data: make([]byte, 4000)}})
	conn, err := net.Dial("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	local, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	// What OVMF sends: a request with tsize, and an error when it has the size.
	if _, err := local.WriteTo([]byte("\x00\x01snponly.efi\x00octet\x00tsize\x000\x00"), server); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 1500)
	n, transfer, err := local.ReadFrom(answer)
	if err != nil || !bytes.Contains(answer[:n], []byte("tsize\x004000\x00")) {
		t.Fatalf("%q, %v", answer[:n], err)
	}
	if _, err := local.WriteTo([]byte("\x00\x05\x00\x00User aborted the transfer\x00"), transfer); err != nil {
		t.Fatal(err)
	}
	stop() // It returns when the transfer has ended.
	if want := map[string]int{ResultSizeOnly: 1}; !maps.Equal(log.results, want) {
		t.Errorf("counted %v, expected %v", log.results, want)
	}
	if log.String() != "" {
		t.Errorf("the log says: %s", log)
	}
}

// sink takes a file as the library does.
type sink struct{ bytes.Buffer }

func (s *sink) ReadFrom(r io.Reader) (int64, error) { return s.Buffer.ReadFrom(r) }

func FuzzANameLeadsToAFileOrNowhere(f *testing.F) {
	for _, seed := range []string{"snponly.efi", "/snponly.efi", "..", "../secret", "a/../snponly.efi", "\x00", "snponly.efi\x00", "%2e%2e/", strings.Repeat("../", 100), `..\secret`} {
		f.Add(seed)
	}
	files := fstest.MapFS{"snponly.efi": {Data: []byte("program")}}
	f.Fuzz(func(t *testing.T, name string) {
		var out sink
		err := send(name, &out, checked{t, files})
		if err == nil != (out.String() == "program") || err == nil && !strings.Contains(name, "snponly.efi") {
			t.Errorf("%q: %q, %v", name, out.String(), err)
		}
		if len(limit(name)) > maxName || len(fmt.Sprintf("%q", limit(name))) > 10*maxName {
			t.Errorf("%q makes a long line", name)
		}
	})
}

// checked fails the test when a name is opened that leads out of the files.
type checked struct {
	t *testing.T
	fs.FS
}

func (c checked) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) || strings.Contains(name, "..") && name != ".." && strings.HasPrefix(name, "../") {
		c.t.Errorf("%q is opened", name)
	}
	return c.FS.Open(name)
}

func TestAThousandServersThatAskAtOnceGetTheirProgram(t *testing.T) {
	const clients = 1000
	program := bytes.Repeat([]byte("iPXE"), 2000)
	address, _, _ := start(t, fstest.MapFS{"snponly.efi": {Data: program}})
	failed := make(chan error, clients)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			client, err := pin.NewClient(address)
			if err != nil {
				failed <- err
				return
			}
			client.SetTimeout(time.Second) // A request that the kernel drops is sent again, as firmware does.
			client.SetRetries(30)
			transfer, err := client.Receive("snponly.efi", "octet")
			var got bytes.Buffer
			if err == nil {
				_, err = transfer.WriteTo(&got)
			}
			if err == nil && !bytes.Equal(got.Bytes(), program) {
				err = fmt.Errorf("%d bytes of %d", got.Len(), len(program))
			}
			if err != nil {
				failed <- err
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
}
