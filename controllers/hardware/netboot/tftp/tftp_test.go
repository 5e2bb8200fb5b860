package tftp

import (
	"bytes"
	"context"
	"errors"
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
	return startWithin(t, files, maxTransfers, maxOfClient)
}

func startWithin(t *testing.T, files fs.FS, most, mostOfOne int) (address string, log *lines, stop func()) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log = &lines{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {

		o := Options{Files: files, Clock: time.Now, Log: slog.New(slog.NewTextHandler(log, nil)), Count: log.count}
		ended <- serve(ctx, conn, o, &transfers{most: most, mostOfOne: mostOfOne, of: map[string]int{}})

	}()
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
		err := send(name, &out, Options{Files: checked{t, files}, Clock: time.Now})
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
	place := make(chan struct{}, maxOfClient/2) // all have one address, and a transfer ends here before it ends there
	for range clients {
		group.Go(func() {
			place <- struct{}{}
			defer func() { <-place }()
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

// TestAFloodOfRequestsIsBounded: each request without options is answered with a block before anybody has confirmed the address, and is waited for.
func TestAFloodOfRequestsIsBounded(t *testing.T) {
	const requests, mostOfOne = 40, 8
	address, log, stop := startWithin(t, fstest.MapFS{"snponly.efi": {Data: bytes.Repeat([]byte("iPXE"), 5000)}}, 2*mostOfOne, mostOfOne)
	server, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	for range requests {
		client, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := client.WriteTo([]byte("\x00\x01snponly.efi\x00octet\x00"), server); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "those for whom there is no room are refused", func() bool { return log.counted(ResultBusy) == requests-mostOfOne })
	other, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.WriteTo([]byte("\x00\x01snponly.efi\x00octet\x00"), server); err != nil {
		t.Fatal(err)
	}
	_ = other.SetReadDeadline(time.Now().Add(10 * time.Second))
	block := make([]byte, 600)
	if n, err := other.Read(block); err != nil || n != 4+512 || block[1] != 3 {
		t.Errorf("another client gets %d bytes: %v", n, err)
	}
	stop()
	if log.counted(ResultSent) > 0 || log.counted(ResultBusy) > requests-mostOfOne {
		t.Errorf("%v", log.results)
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 2000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func (l *lines) counted(result string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.results[result]
}

func TestATransferThatTakesTooLongEnds(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := timedReader{strings.NewReader("abc"), func() time.Time { return now }, now.Add(transferLimit)}
	if n, err := r.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	now = now.Add(transferLimit + time.Second)
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, errSlow) {
		t.Errorf("%v", err)
	}
}
