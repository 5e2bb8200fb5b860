package netboot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	pin "github.com/pin/tftp/v3"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/tftp"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	fanOutClients = 100
	fanOutSize    = 64 << 20
	// serveVariable makes this test binary the boot service: the directory of its files, and the address to listen on.
	serveVariable = "INGOT_BENCH_BOOT_SERVICE"
)

func TestMain(m *testing.M) {
	if argument := os.Getenv(serveVariable); argument != "" {
		fmt.Fprintln(os.Stderr, serveFiles(argument))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveFiles is a process with nothing but the boot service, so that its processor time is not that of the clients.
func serveFiles(argument string) error {
	dir, address, _ := strings.Cut(argument, " ")
	conn, err := net.ListenPacket("udp4", address) // TFTP has the same number
	if err != nil {
		return err
	}
	go func() {
		fmt.Fprintln(os.Stderr, tftp.Serve(context.Background(), conn, tftp.Options{Files: os.DirFS(dir), Clock: time.Now, Log: slog.New(slog.DiscardHandler), Count: func(string) {}}))
	}()
	service, err := New(Options{
		Store: &lockedStore{fakeStore: &fakeStore{sessions: openSessions(bootingServers)}}, Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{1}, 32), nil },
		BaseURL: "http://" + address, Files: os.DirFS(dir), Kernel: "kernel", Initrd: "initrd",
	})
	if err != nil {
		return err
	}
	server := http.Server{Addr: address, Handler: service, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// bootingServers are the servers that boot at once.
const bootingServers = 1000

// openSessions returns sessions of so many servers that may boot the agent.
func openSessions(servers int) map[string]*Session {
	out := map[string]*Session{}
	for i := range servers {
		now := time.Now()
		session := &Session{
			HostUID: fmt.Sprintf("host-%d", i), BootMAC: macOf(i), Work: Work{Operation: hardware.OpInstall}, Since: now, OpenedAt: now, Deadline: now.Add(time.Hour),
			AttemptStatus: hardware.AttemptStatus{Number: 1, State: hardware.AttemptRunning, Step: hardware.StepBooting},
		}
		out[session.HostUID] = session
	}
	return out
}

func macOf(i int) string { return fmt.Sprintf("52:54:00:00:%02x:%02x", i>>8, i&255) }

// BenchmarkAThousandServersBoot has 1,000 servers at once load iPXE's program by TFTP and ask for their boot document, as after a power failure. It reports
// the processor seconds of the server for all of them, and the most memory that it had.
func BenchmarkAThousandServersBoot(b *testing.B) {
	dir := b.TempDir()
	for name, size := range map[string]int{"initrd": 1, "kernel": 1, "snponly.efi": 200 << 10} { // Debian's has 172 to 330 KiB
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("i"), size), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	address := freeAddress(b)
	server := startBootService(b, dir, address)
	before := processorTime(b, server)
	for b.Loop() {
		results := make(chan error)
		for i := range bootingServers {
			go func() { results <- loadAsFirmware(address, macOf(i)) }()
		}
		for range bootingServers {
			if err := <-results; err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric((processorTime(b, server)-before).Seconds()/float64(b.N), "cpu-s/1000-servers")
	b.ReportMetric(memoryPeak(b, server)/(1<<20), "MiB-peak")
}

// startBootService starts the boot service as a process that ends with the benchmark, and returns its number.
func startBootService(b *testing.B, dir, address string) int {
	command := exec.Command("/proc/self/exe")
	command.Env = append(os.Environ(), serveVariable+"="+dir+" "+address)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	waitForServer(b, address)
	return command.Process.Pid
}

// loadAsFirmware loads what firmware and iPXE load before the kernel. A server that is told to wait asks again.
func loadAsFirmware(address, mac string) error {
	client, err := pin.NewClient(address)
	if err != nil {
		return err
	}
	client.SetBlockSize(1468) // as EDK II and PXE ROMs ask for
	client.SetRetries(20)
	transfer, err := client.Receive("snponly.efi", "octet")
	if err != nil {
		return err
	}
	if _, err := transfer.WriteTo(io.Discard); err != nil {
		return err
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/boot/" + mac)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	document, err := io.ReadAll(response.Body)
	if err == nil && !bytes.HasPrefix(document, []byte("#!ipxe")) {
		err = fmt.Errorf("status %s: %s", response.Status, document)
	}
	return err
}

// BenchmarkFanOut loads the initrd by 100 clients at once, from the boot service and from nginx in turn. It reports the processor seconds of the
// server for each GiB, and the most memory that the server had.
func BenchmarkFanOut(b *testing.B) {
	nginx := require.Tool(b, "nginx", "apt-get install nginx-light")
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o755); err != nil {
		b.Fatal(err)
	}
	for name, size := range map[string]int{"initrd": fanOutSize, "kernel": 1} {
		content := bytes.Repeat([]byte("0123456789abcdef"), max(1, size/16))
		if err := os.WriteFile(filepath.Join(dir, "files", name), content, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	// nginx gives up root's rights, and must still reach the file.
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		command func(address string) *exec.Cmd
	}{
		{"ingot", func(address string) *exec.Cmd {
			command := exec.Command("/proc/self/exe")
			command.Env = append(os.Environ(), serveVariable+"="+filepath.Join(dir, "files")+" "+address)
			return command
		}},
		{"nginx", func(address string) *exec.Cmd {
			config := filepath.Join(dir, "nginx.conf")
			content := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/errors;
events { worker_connections 1024; }
http { access_log off; sendfile on; tcp_nopush on; server { listen %[2]s; root %[1]s; } }
`, dir, address)
			if err := os.WriteFile(config, []byte(content), 0o644); err != nil {
				b.Fatal(err)
			}
			return exec.Command(nginx, "-e", dir+"/errors", "-c", config)
		}},
	} {
		b.Run(c.name, func(b *testing.B) { benchFanOut(b, c.command) })
	}
}

func benchFanOut(b *testing.B, command func(address string) *exec.Cmd) {
	address := freeAddress(b)
	server := command(address)
	server.Stderr = os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	waitForServer(b, address)
	before := processorTime(b, server.Process.Pid)
	b.SetBytes(fanOutClients * fanOutSize)
	for b.Loop() {
		results := make(chan error)
		for range fanOutClients {
			go func() { results <- load("http://" + address + "/files/initrd") }()
		}
		for range fanOutClients {
			if err := <-results; err != nil {
				b.Fatal(err)
			}
		}
	}
	used := processorTime(b, server.Process.Pid) - before
	gib := float64(b.N) * fanOutClients * fanOutSize / (1 << 30)
	b.ReportMetric(used.Seconds()/gib, "cpu-s/GiB")
	b.ReportMetric(memoryPeak(b, server.Process.Pid)/(1<<20), "MiB-peak")
}

// load reads the file and drops it.
func load(url string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, ReadBufferSize: 64 << 10}}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, make([]byte, 256<<10))
	if err == nil && n != fanOutSize {
		err = fmt.Errorf("%d bytes, status %s", n, response.Status)
	}
	return err
}

func freeAddress(b *testing.B) string {
	address, err := loopback.FreeAddress()
	if err != nil {
		b.Fatal(err)
	}
	return address
}

func waitForServer(b *testing.B, address string) {
	for range 500 {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatal("the server does not listen")
}

// processorTime returns the processor time of the process in user and kernel mode (proc(5), fields 14 and 15, in hundredths of a second).
func processorTime(b *testing.B, pid int) time.Duration {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// The name of the program in field 2 may have spaces.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memoryPeak returns the most memory that the process had, in bytes.
func memoryPeak(b *testing.B, pid int) float64 {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib * 1024
		}
	}
	b.Fatal("/proc has no VmHWM")
	return 0
}
