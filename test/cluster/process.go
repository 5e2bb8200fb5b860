package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is the running program.
type process struct {
	command *exec.Cmd
	stderr  *tail
	// firstLine gets the first line of standard output.
	firstLine chan string
	// exited is closed when the program has ended and waitErr is set.
	exited  chan struct{}
	waitErr error
}

func startProcess(program string, args []string, stderr io.Writer) (*process, error) {
	p := &process{
		command:   exec.Command(program, args...),
		stderr:    &tail{next: stderr},
		firstLine: make(chan string, 1),
		exited:    make(chan struct{}),
	}
	p.command.Stderr = p.stderr
	// Ctrl-C in a terminal goes to the whole process group; whoever started the cluster stops it when done with it.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The program ends with its standard input, which the kernel closes when this process is no more.
	if _, err := p.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go p.wait(stdout)
	return p, nil
}

func (p *process) wait(stdout io.Reader) {
	reader := bufio.NewReader(stdout)
	if line, err := reader.ReadString('\n'); err == nil {
		p.firstLine <- strings.TrimSuffix(line, "\n")
	}
	_, _ = io.Copy(io.Discard, reader)
	p.waitErr = p.command.Wait()
	close(p.exited)
}

// stop asks the program to end, and kills it when it does not.
func (p *process) stop(grace time.Duration) error {
	select {
	case <-p.exited:
		return p.failure()
	default:
	}
	// A failure to signal means that the program has just ended, which the wait below finds.
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		if p.waitErr != nil {
			return p.failure()
		}
		return nil
	case <-time.After(grace):
		p.kill()
		return fmt.Errorf("killed, because it had not stopped within %s", grace)
	}
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.exited
}

// failure says why the program has ended, in its own words where it left any.
func (p *process) failure() error {
	said := strings.TrimSpace(p.stderr.String())
	switch {
	case said != "":
		return errors.New(said)
	case p.waitErr != nil:
		return fmt.Errorf("the program ended: %w", p.waitErr)
	default:
		return errors.New("the program ended by itself")
	}
}

// tailSize is enough for the last words of a program.
const tailSize = 4 << 10

// tail keeps the end of what is written to it, and passes everything on to next where there is one.
type tail struct {
	next io.Writer

	mutex sync.Mutex
	kept  []byte
}

// Write implements io.Writer.
func (t *tail) Write(content []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.kept = append(t.kept, content...)
	if excess := len(t.kept) - tailSize; excess > 0 {
		t.kept = append([]byte(nil), t.kept[excess:]...)
	}
	if t.next == nil {
		return len(content), nil
	}
	return t.next.Write(content)
}

func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(t.kept)
}

// ProgramVariable names the environment variable that says where the control plane program is.
const ProgramVariable = "INGOT_CONTROLPLANE"

const programName = "ingot-controlplane"

// Program finds the control plane program: where INGOT_CONTROLPLANE says, else beside the running executable, else in
// bin at the root of the module that holds the working directory, or of a module around that one.
func Program() (string, error) {
	if named := os.Getenv(ProgramVariable); named != "" {
		if !isFile(named) {
			return "", fmt.Errorf("%s names %s, which is no file: run make bin/%s", ProgramVariable, named, programName)
		}
		return named, nil
	}
	candidates, err := programCandidates()
	if err != nil {
		return "", err
	}
	for _, candidate := range candidates {
		if isFile(candidate) {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("no control plane program at %s: run make bin/%s", strings.Join(candidates, " or "), programName)
}

func programCandidates() ([]string, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running executable: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	candidates := []string{filepath.Join(filepath.Dir(executable), programName)}
	for {
		if isFile(filepath.Join(dir, "go.mod")) {
			candidates = append(candidates, filepath.Join(dir, "bin", programName))
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return candidates, nil
		}
		dir = parent
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
