// Package swtpm runs software TPMs (swtpm of Debian) for tests.
package swtpm

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/require"
)

// Install is the command that installs the program.
const Install = "apt-get install swtpm"

// Dial starts a TPM 2.0 with the state in the folder and returns a connection that takes its commands. The same folder is the same TPM.
func Dial(t testing.TB, state string) net.Conn {
	t.Helper()
	at := start(t, state, "--server", "type=unixio,path=", "--flags", "not-need-init,startup-clear")
	connection, err := net.Dial("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// Control starts a TPM 2.0 with the state in the folder and returns the socket by which QEMU drives it. It ends with the virtual server.
func Control(t testing.TB, state string) string {
	t.Helper()
	return start(t, state, "--ctrl", "type=unixio,path=", "--terminate")
}

// start runs swtpm until the test ends. The argument after kind gets the path of a socket, which is returned when it is there.
func start(t testing.TB, state, kind, socket string, more ...string) string {
	t.Helper()
	program := require.Tool(t, "swtpm", Install)
	folder, err := os.MkdirTemp("", "swtpm") // the name of a socket has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(folder, "s")
	command := exec.Command(program, append([]string{"socket", "--tpm2", "--tpmstate", "dir=" + state, kind, socket + at}, more...)...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		_ = os.RemoveAll(folder)
	})
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if isListening(t, at) {
			return at
		}
		select {
		case <-ended:
			t.Fatalf("swtpm ended at once")
		default:
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("swtpm has made no socket %s", at)
		}
	}
}

// isListening reports whether a program accepts connections at the socket. It makes none, which would be the only one of a TPM that QEMU drives.
func isListening(t testing.TB, path string) bool {
	t.Helper()
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	const accepts = " 00010000 " // SO_ACCEPTCON, include/linux/net.h
	for line := range strings.Lines(string(sockets)) {
		if strings.HasSuffix(line, " "+path+"\n") && strings.Contains(line, accepts) {
			return true
		}
	}
	return false
}
