package ironic

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ingot-dev/ingot/test/loopback"
)

// Install is the command that installs what this package starts. The package ironic-common has the programs and no service.
const Install = "apt-get install ironic-common genisoimage ipmitool"

// programs are those that a Process needs: Ironic calls genisoimage for config drives.
var programs = []string{"ironic", "ironic-dbsync", "genisoimage"}

// Missing returns a program that is not on this machine and that a Process needs, or "".
func Missing() string {
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// startTimeout is how long Ironic may take until its API answers. It takes 4 to 8 seconds on a free core.
const startTimeout = 2 * time.Minute

// Process is a running Ironic: API and conductor in one process.
type Process struct {
	// Endpoint is the URL of the API.
	Endpoint string

	dir     string
	set     settings
	process *exec.Cmd
	exited  chan struct{}
}

// Launch starts an Ironic with its files and an empty database in dir, and waits until its API answers. Stop ends it.
func Launch(ctx context.Context, dir string, options Options) (*Process, error) {
	p := &Process{dir: dir}
	options.Address = cmp.Or(options.Address, loopback.Host())
	set := settings{Options: options, Dir: dir, Auth: "noauth", FilesDir: FilesDir}
	var err error
	if set.Port, err = loopback.FreePort(options.Address); err != nil {
		return nil, err
	}
	if set.ConductPort, err = loopback.FreePort(options.Address); err != nil {
		return nil, err
	}
	if options.Username != "" {
		set.Auth = "http_basic"
		if err := p.writePasswords(ctx, options); err != nil {
			return nil, err
		}
	}
	p.Endpoint, p.set = "http://"+net.JoinHostPort(options.Address, set.Port), set
	if err := p.writeConfig(); err != nil {
		return nil, err
	}
	program, arguments := p.command("ironic-dbsync", "--config-file", p.config(), "create_schema")
	if out, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("create the schema of Ironic's database: %w: %s", err, out)
	}
	return p, p.Resume(ctx)
}

// Configure changes the options of a process that Stop has ended, for the next Resume.
func (p *Process) Configure(change func(*Options)) error {
	change(&p.set.Options)
	return p.writeConfig()
}

func (p *Process) config() string { return filepath.Join(p.dir, "ironic.conf") }

// inRoot runs a program in another root directory, where the directory of the process has the same path as here, and so have devices and processes. The mounts
// are in a namespace of their own and end with the program.
const inRoot = `root=$1 dir=$2; shift 2
mkdir -p "$root$dir" && mount --bind "$dir" "$root$dir" && mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc" && exec chroot "$root" "$@"`

// command returns the program and the arguments that run a program of Ironic.
func (p *Process) command(program string, arguments ...string) (string, []string) {
	if p.set.Root == "" {
		return program, arguments
	}
	return "unshare", append([]string{"--mount", "sh", "-c", inRoot, "sh", p.set.Root, p.dir, program}, arguments...)
}

// Resume starts the process, which Stop may have ended, and waits until the API answers.
func (p *Process) Resume(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(p.dir, "ironic.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start Ironic: %w", err)
	}
	defer func() { _ = log.Close() }()
	program, arguments := p.command("ironic", "--config-file", p.config())
	process := exec.Command(program, arguments...) //nolint:noctx // Stop ends it
	process.Stdout, process.Stderr = log, log
	process.Env = withoutAuthorities(os.Environ())
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		return fmt.Errorf("start Ironic: %w", err)
	}
	exited := make(chan struct{})
	p.process, p.exited = process, exited
	go func() {
		_ = process.Wait()
		close(exited)
	}()
	return p.waitUntilReady(ctx)
}

// withoutAuthorities leaves out the variables by which Python's requests takes other authorities than those that its caller names.
func withoutAuthorities(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return name == "REQUESTS_CA_BUNDLE" || name == "CURL_CA_BUNDLE"
	})
}

// Stop ends the process at once, as a crash does. The database stays.
func (p *Process) Stop() {
	if p.process == nil {
		return
	}
	_ = syscall.Kill(-p.process.Process.Pid, syscall.SIGKILL)
	<-p.exited
	p.process = nil
}

// waitUntilReady waits until the API answers and a conductor has registered the hardware type: before that the creation of a node fails.
func (p *Process) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !p.answers(ctx) {
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("the process of Ironic has ended:\n%s", p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("the API of Ironic does not answer at %s:\n%s", p.Endpoint, p.logTail())
		}
	}
	return nil
}

// answers asks for the API's version, which needs no authentication, and then looks into the log for the conductor.
func (p *Process) answers(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Endpoint+"/", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK && bytes.Contains(p.log(), []byte("Successfully started conductor"))
}

func (p *Process) log() []byte {
	log, _ := os.ReadFile(filepath.Join(p.dir, "ironic.log"))
	return log
}

func (p *Process) logTail() []byte {
	log := p.log()
	return log[max(0, len(log)-6000):]
}

func (p *Process) writeConfig() error {
	for _, dir := range []string{"state", FilesDir, "tftpboot", "master", "images"} {
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o700); err != nil {
			return fmt.Errorf("configure Ironic: %w", err)
		}
	}
	var text bytes.Buffer
	err := config.Execute(&text, p.set)
	if err := errors.Join(err, os.WriteFile(p.config(), text.Bytes(), 0o600)); err != nil {
		return fmt.Errorf("configure Ironic: %w", err)
	}
	return nil
}

// writePasswords writes the file of HTTP basic authentication. Ironic takes bcrypt alone.
func (p *Process) writePasswords(ctx context.Context, options Options) error {
	const script = "import bcrypt,sys; print(bcrypt.hashpw(sys.argv[1].encode(), bcrypt.gensalt(4)).decode())"
	hash, err := exec.CommandContext(ctx, "/usr/bin/python3", "-c", script, options.Password).Output()
	if err != nil {
		return fmt.Errorf("hash the password: %w", err)
	}
	line := fmt.Sprintf("%s:%s\n", options.Username, bytes.TrimSpace(hash))
	if err := os.WriteFile(filepath.Join(p.dir, "htpasswd"), []byte(line), 0o600); err != nil {
		return fmt.Errorf("configure Ironic: %w", err)
	}
	return nil
}
