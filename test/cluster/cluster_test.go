package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// behaviour makes the test binary be a control plane program that behaves so.
const behaviour = "INGOT_TEST_BEHAVIOUR"

const fakeEndpoint = "https://127.0.0.1:6443"

func TestMain(m *testing.M) {
	if os.Getenv(behaviour) == "" {
		os.Exit(m.Run())
	}
	if err := fakeProgram(os.Getenv(behaviour)); err != nil {
		fmt.Fprintln(os.Stderr, "fake:", err)
		os.Exit(1)
	}
}

func fakeProgram(behaviour string) error {
	dir := os.Args[slices.Index(os.Args, "--dir")+1]
	if err := os.WriteFile(filepath.Join(dir, "args"), []byte(strings.Join(os.Args[1:], " ")), 0o600); err != nil {
		return err
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	switch behaviour {
	case "fails":
		return errors.New("the port is taken")
	case "hangs":
		select {}
	case "starts a grandchild": // ... and is killed before it could stop it
		return startForGrandchild(dir)
	}
	if err := fakeReady(dir); err != nil {
		return err
	}
	switch behaviour {
	case "stays":
		select {}
	case "ends":
		return nil
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		terminate <- syscall.SIGTERM
	}()
	<-terminate
	return nil
}

func fakeReady(dir string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["fake"] = &clientcmdapi.Cluster{Server: fakeEndpoint, CertificateAuthorityData: []byte("authority")}
	config.Contexts["fake"] = &clientcmdapi.Context{Cluster: "fake"}
	config.CurrentContext = "fake"
	file := filepath.Join(dir, "admin.kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return err
	}
	fmt.Println("ready", fakeEndpoint, file)
	return nil
}

func startForGrandchild(dir string) error {
	if err := os.Setenv(behaviour, "serves"); err != nil {
		return err
	}
	cluster, err := Start(context.Background(), Options{Program: os.Args[0], Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println(cluster.process.command.Process.Pid)
	select {}
}

func startFake(ctx context.Context, t *testing.T, behave string, options Options) (*Cluster, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(behaviour, behave)
	options.Program = self
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	return Start(ctx, options)
}

func TestStartHandsOutWhatTheProgramSays(t *testing.T) {
	dir := t.TempDir()
	cluster, err := startFake(t.Context(), t, "serves", Options{Dir: dir, Port: 7443, AuditLog: "audit", Args: []string{"-v"}})
	if err != nil {
		t.Fatal(err)
	}
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "run --exit-with-parent --dir " + dir + " --port 7443 --audit-log audit -v"; string(args) != want {
		t.Errorf("arguments %q, want %q", args, want)
	}
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Endpoint() != fakeEndpoint || config.Host != fakeEndpoint || string(cluster.CA()) != "authority" {
		t.Errorf("endpoint %s, host %s, authority %s", cluster.Endpoint(), config.Host, cluster.CA())
	}
	content, err := os.ReadFile(cluster.KubeconfigPath())
	if err != nil || !bytes.Equal(content, cluster.Kubeconfig()) {
		t.Errorf("the kubeconfig is not that of its file: %v", err)
	}
	for range 2 {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestStartTellsWhatTheProgramSaysOnFailure(t *testing.T) {
	var stderr bytes.Buffer
	_, err := startFake(t.Context(), t, "fails", Options{Stderr: &stderr})
	if err == nil || !strings.Contains(err.Error(), "the port is taken") || !strings.Contains(stderr.String(), "the port is taken") {
		t.Errorf("error %v, standard error %q", err, stderr.String())
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := startFake(ctx, t, "hangs", Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestStopKillsAProgramThatStays(t *testing.T) {
	cluster, err := startFake(t.Context(), t, "stays", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.process.stop(100 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error %v", err)
	}
}

func TestStopTellsOfAProgramThatEndedBefore(t *testing.T) {
	cluster, err := startFake(t.Context(), t, "ends", Options{})
	if err != nil {
		t.Fatal(err)
	}
	<-cluster.process.exited
	if err := cluster.Stop(); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("error %v", err)
	}
}

func TestAClusterEndsWhenItsParentIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "--dir", t.TempDir())
	parent.Env = append(os.Environ(), behaviour+"=starts a grandchild")
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for isRunning(pid) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the cluster outlives its parent")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// isRunning does not count a process that has ended and that init has yet to collect.
func isRunning(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}
