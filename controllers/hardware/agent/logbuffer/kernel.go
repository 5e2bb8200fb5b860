package logbuffer

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
)

// maxKernelLevel is the level of warnings, KERN_WARNING; errors and worse have lower numbers.
const maxKernelLevel = 4

// FollowKernel writes the kernel's warnings and errors to the buffer until the messages end. messages is /dev/kmsg, each of whose reads returns one
// message (Documentation/ABI/testing/dev-kmsg of Linux).
func (b *Buffer) FollowKernel(messages io.Reader) error {
	record := make([]byte, 16<<10)
	for {
		n, err := messages.Read(record)
		switch {
		case errors.Is(err, syscall.EPIPE):
			continue // messages were overwritten before they were read; the next read has the oldest that is left
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the kernel's messages: %w", err)
		}
		if line := kernelLine(string(record[:n])); line != "" {
			// It never fails.
			_, _ = b.Write([]byte(line + "\n"))
		}
	}
}

// kernelLine returns the line for a record "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT"; "" for one that is no warning. What follows the first line
// are keys of its device.
func kernelLine(record string) string {
	head, text, found := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	if !found || len(fields) < 3 {
		return ""
	}
	priority, err := strconv.Atoi(fields[0])
	if err != nil || priority < 0 || priority&7 > maxKernelLevel {
		return ""
	}
	microseconds, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n")
	source := "kernel"
	if priority>>3 != 0 {
		source = "user space" // a facility other than the kernel's
	}
	return fmt.Sprintf("%s [%.6f] %s", source, float64(microseconds)/1e6, text)
}
