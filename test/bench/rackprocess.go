package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// rackProcess is the rack, seen from outside.
type rackProcess struct {
	ready rackReady
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	ended chan error
}

// rackGrace is how long a large rack may take to let go.
const rackGrace = time.Minute

// startRack starts this program again, as the rack. It ends when its standard input does, and so with this process.
func startRack(dir string, spec rackSpec) (*rackProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "rack.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	defer log.Close()
	p := &rackProcess{cmd: exec.Command(self, rackCommand), ended: make(chan error, 1)}
	p.cmd.Stderr = log
	// Ctrl-C in a terminal is this process's to act on: it ends the manager before the rack.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the rack: %w", err)
	}
	p.cmd.Stdout, p.out = outEnd, json.NewDecoder(out)
	err = p.cmd.Start()
	if err := errors.Join(err, outEnd.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start the rack: %w", err), out.Close())
	}
	go func() { p.ended <- errors.Join(p.cmd.Wait(), out.Close()) }()
	if err := errors.Join(json.NewEncoder(p.in).Encode(spec), p.out.Decode(&p.ready)); err != nil {
		return nil, errors.Join(fmt.Errorf("start the rack: %w: see %s", err, log.Name()), p.stop())
	}
	return p, nil
}

// reads asks how many requests each BMC has had that read something.
func (p *rackProcess) reads() (map[string]int64, error) {
	var counts map[string]int64
	err := json.NewEncoder(p.in).Encode("reads")
	if err == nil {
		err = p.out.Decode(&counts)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the rack: %w", err)
	}
	return counts, nil
}

func (p *rackProcess) stop() error {
	if p == nil {
		return nil
	}
	closed := p.in.Close()
	select {
	case err := <-p.ended:
		return errors.Join(closed, err)
	case <-time.After(rackGrace):
	}
	killed := p.cmd.Process.Kill()
	<-p.ended
	return errors.Join(closed, killed, fmt.Errorf("the rack did not stop within %s and was killed", rackGrace))
}
