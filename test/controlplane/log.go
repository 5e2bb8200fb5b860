package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// savedStderr is standard error as it was before logTo.
var savedStderr *os.File

// logTo sends standard error to a file. It replaces the file descriptor, because klog, etcd, gRPC and the Go runtime
// each write to it in their own way.
func logTo(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	saved, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return fmt.Errorf("keep standard error: %w", err)
	}
	savedStderr = os.NewFile(uintptr(saved), "stderr")
	if err := unix.Dup3(int(log.Fd()), int(os.Stderr.Fd()), 0); err != nil {
		return fmt.Errorf("redirect standard error: %w", err)
	}
	return nil
}

// originalStderr is where the program's own errors go, to be seen by whoever started it.
func originalStderr() *os.File {
	if savedStderr != nil {
		return savedStderr
	}
	return os.Stderr
}
