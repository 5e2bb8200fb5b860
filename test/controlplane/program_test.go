package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// asProgram makes the test binary be the program, so that the tests run what is compiled with them.
const asProgram = "INGOT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a control plane under test.
type program struct {
	command    *exec.Cmd
	stdin      io.Closer
	stderr     strings.Builder
	exited     chan struct{}
	url        string
	kubeconfig string
}

// command prepares the test binary to run as the program of that name.
func command(ctx context.Context, t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	result := exec.CommandContext(ctx, link, args...)
	result.Env = append(os.Environ(), asProgram+"=1")
	return result
}

// startProgram returns when the control plane has said that it is ready.
func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{exited: make(chan struct{})}
	p.command = command(context.Background(), t, "ingot-controlplane", append([]string{"run", "--exit-with-parent"}, args...)...)
	p.command.Stderr = &p.stderr
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.exited
	})
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		_ = p.command.Wait()
		close(p.exited)
	}()
	if readErr != nil {
		<-p.exited
		t.Fatalf("no ready line: %v; standard error: %s", readErr, p.stderr.String())
	}
	if _, err := fmt.Sscanf(line, "ready %s %s\n", &p.url, &p.kubeconfig); err != nil {
		t.Fatalf("ready line %q: %v", line, err)
	}
	return p
}

// waitForExit fails the test unless the program ends well and soon.
func (p *program) waitForExit(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		t.Fatal("the program does not end")
	}
	if !p.command.ProcessState.Success() {
		t.Fatalf("the program ended with %s: %s", p.command.ProcessState, p.stderr.String())
	}
}

func (p *program) terminate(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.waitForExit(t)
}

func (p *program) adminConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// listeners are the TCP addresses on which the program accepts connections.
func (p *program) listeners(t *testing.T) []string {
	t.Helper()
	sockets := map[string]bool{}
	descriptors := fmt.Sprintf("/proc/%d/fd", p.command.Process.Pid)
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		target, _ := os.Readlink(filepath.Join(descriptors, entry.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var result []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		result = append(result, listening(t, table, sockets)...)
	}
	return result
}

// listening reads a table of sockets, in which 0A is the state of one that listens.
func listening(t *testing.T, table string, inodes map[string]bool) []string {
	t.Helper()
	content, err := os.ReadFile(table)
	if os.IsNotExist(err) { // a machine without IPv6
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var result []string
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != "0A" || !inodes[fields[9]] {
			continue
		}
		var address [4]byte
		var port uint16
		if _, err := fmt.Sscanf(fields[1], "%02X%02X%02X%02X:%04X", &address[3], &address[2], &address[1], &address[0], &port); err != nil {
			t.Fatalf("%s: socket %s is not an IPv4 one: %v", table, fields[1], err)
		}
		result = append(result, fmt.Sprintf("%s:%d", net.IP(address[:]), port))
	}
	return result
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually fails the test unless the condition holds within a time that a loaded machine needs.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
