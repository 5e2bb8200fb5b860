package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// killDelay is how long a program that was told to end may take to remove what it has made.
	killDelay = 30 * time.Second
	// logTail is how much of the log of a step that failed is part of the error.
	logTail = 1500
)

// step is a part of the work.
type step struct {
	name string
	run  func(ctx context.Context, log io.Writer) error
}

// runSteps runs the steps and says how long each took. The log of the one that fails is left in dir.
func runSteps(ctx context.Context, steps []step, dir string, progress io.Writer) error {
	for i, s := range steps {
		began := time.Now()
		fmt.Fprintf(progress, "[%d/%d] %s\n", i+1, len(steps), s.name)
		var log bytes.Buffer
		err := s.run(ctx, io.MultiWriter(&log, &detailWriter{to: progress}))
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return stepError(ctx, s, err, log.Bytes(), dir)
		}
		fmt.Fprintf(progress, "      done in %d s\n", int(time.Since(began).Seconds()))
	}
	return nil
}

// stepError writes the log of the step that failed and says where it is.
func stepError(ctx context.Context, s step, err error, log []byte, dir string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: interrupted", s.name)
	}
	if len(log) == 0 {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	file := filepath.Join(dir, "failed-"+strings.ReplaceAll(s.name, " ", "-")+".log")
	writeErr := os.WriteFile(file, log, 0o644)
	tail := log[max(0, len(log)-logTail):]
	return errors.Join(fmt.Errorf("%s: %w; the whole log is in %s, it ends with:\n%s", s.name, err, file, bytes.TrimSpace(tail)), writeErr)
}

// detailWriter shows the lines that mmdebstrap marks as information.
type detailWriter struct {
	to   io.Writer
	line []byte
}

// Write implements io.Writer.
func (w *detailWriter) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\n' {
			w.line = append(w.line, c)
			continue
		}
		if text, ok := strings.CutPrefix(string(w.line), "I: "); ok {
			fmt.Fprintf(w.to, "      %s\n", text)
		}
		w.line = w.line[:0]
	}
	return len(b), nil
}

// command is a program to run.
type command struct {
	name        string
	args        []string
	dir         string
	environment []string
}

// run runs the program until it ends or the context does. Then its whole process group is told to end, and killed after killDelay.
func (c command) run(ctx context.Context, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.environment...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		// It fails when the group has ended, as it should.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}
