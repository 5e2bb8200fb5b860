package environment

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Process is a program that the demo started.
type Process struct {
	// Log is the file that gets its output.
	Log  string
	name string
	cmd  *exec.Cmd
	done chan error
}

// stopGrace is how long an orderly end may take before the process is killed.
const stopGrace = 20 * time.Second

// StartProcess starts a program whose output is added to NAME.log in dir. It dies with the demo, however that ends.
func StartProcess(dir, name, program string, args ...string) (*Process, error) {
	p := &Process{name: name, Log: filepath.Join(dir, name+".log"), done: make(chan error, 1)}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer out.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// A process group of its own keeps the terminal's Ctrl-C from it: the demo ends it in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w: run `make build`", name, err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	return p, nil
}

// Ended reports whether the process is gone, and why.
func (p *Process) Ended() (bool, error) {
	select {
	case err := <-p.done:
		p.done <- err
		return true, fmt.Errorf("%s ended: %w; its log is %s", p.name, errors.Join(err, errors.New("nobody asked it to")), p.Log)
	default:
		return false, nil
	}
}

// Stop ends the process in order, and by force when that takes too long.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case err := <-p.done:
		p.done <- err
		return nil
	case <-time.After(stopGrace):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return fmt.Errorf("%s did not stop within %s and was killed; its log is %s", p.name, stopGrace, p.Log)
}

// Kill ends the process at once, as a crash does, and returns when it is gone.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	p.done <- <-p.done
	return nil
}

// Beside returns the path of a program next to the running one.
func Beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not beside %s: run `make build`", name, self)
	}
	return path, nil
}
