// Package swtpm runs software TPMs (swtpm of Debian) for servers that are tests.
package swtpm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/require"
)

// Need skips a test where the program is missing.
func Need(t testing.TB) {
	t.Helper()
	require.Tool(t, "swtpm", "apt-get install swtpm")
}

// Dial starts a TPM 2.0 with the state in the folder and returns a connection that takes its commands. The same folder is the same TPM.
func Dial(t testing.TB, state string) net.Conn {
	t.Helper()
	Need(t)
	tpm, err := start(state, "--server", "--flags", "not-need-init,startup-clear")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tpm.Stop)
	connection, err := net.Dial("unix", tpm.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// TPM is a TPM that runs.
type TPM struct {
	// Socket takes its commands or, after Drive, those of QEMU.
	Socket string
	folder string
	ended  chan struct{}
	kill   func() error
}

// Drive starts a TPM 2.0 with the state in the folder, for one run of QEMU.
func Drive(state string) (*TPM, error) { return start(state, "--ctrl") }

// Stop ends the TPM.
func (t *TPM) Stop() {
	_ = t.kill() // it may have ended by itself
	<-t.ended
	_ = os.RemoveAll(t.folder)
}

// start runs swtpm. The argument kind gets the path of the socket, at which it listens when start returns.
func start(state, kind string, more ...string) (*TPM, error) {
	folder, err := os.MkdirTemp("", "swtpm") // the path of a socket has 107 bytes at most
	if err != nil {
		return nil, err
	}
	t := &TPM{Socket: filepath.Join(folder, "s"), folder: folder, ended: make(chan struct{})}
	command := exec.Command("swtpm", append([]string{"socket", "--tpm2", "--tpmstate", "dir=" + state, kind, "type=unixio,path=" + t.Socket}, more...)...)
	// It ends with the test, also when that is killed.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	t.kill = command.Process.Kill
	go func() {
		_ = command.Wait() // it is killed
		close(t.ended)
	}()
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
		if isListening(t.Socket) {
			return t, nil
		}
		select {
		case <-t.ended:
			begin = time.Time{}
		default:
		}
	}
	t.Stop()
	return nil, fmt.Errorf("swtpm does not listen at %s with the state in %s, which only one may have at a time", t.Socket, state)
}

// isListening reports whether a program accepts connections at the socket. It makes none, which would be the only one of a TPM that QEMU drives.
func isListening(path string) bool {
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return false
	}
	const accepts = " 00010000 " // SO_ACCEPTCON, include/linux/net.h
	for line := range strings.Lines(string(sockets)) {
		if strings.HasSuffix(line, " "+path+"\n") && strings.Contains(line, accepts) {
			return true
		}
	}
	return false
}
