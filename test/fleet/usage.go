package fleet

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// userHZ is the kernel's unit of process times on every architecture that Go runs Linux on.
const userHZ = 100

// Usage is what a process has used since its start.
type Usage struct {
	// CPU is the time of processors, of the program and of the kernel for it.
	CPU time.Duration
	// Peak is the most resident memory at any time, Resident the resident memory now, both in bytes.
	Peak, Resident int64
}

// ReadUsage reads /proc/PID/stat and /proc/PID/status, see proc(5).
func ReadUsage(proc fs.FS, pid int) (Usage, error) {
	fields, err := statFields(proc, pid)
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	for _, i := range []int{utime, stime} {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("times of process %d: %w", pid, err)
		}
		u.CPU += time.Duration(ticks) * time.Second / userHZ
	}
	status, err := fs.ReadFile(proc, path.Join(strconv.Itoa(pid), "status"))
	if err != nil {
		return Usage{}, err
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			u.Peak = kib << 10
		}
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			u.Resident = kib << 10
		}
	}
	return u, nil
}

// Indices into the result of statFields, which begins with the state, field 3 of proc(5).
const (
	parent = 4 - 3
	utime  = 14 - 3
	stime  = 15 - 3
)

// statFields returns the fields that follow the program's name. The name itself may contain blanks and brackets.
func statFields(proc fs.FS, pid int) ([]string, error) {
	name := path.Join(strconv.Itoa(pid), "stat")
	text, err := fs.ReadFile(proc, name)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= stime {
		return nil, fmt.Errorf("%s: expected at least %d fields behind the name, seen %d", name, stime+1, len(fields))
	}
	return fields, nil
}

// ChildProcesses returns the command lines of a process's children by PID.
func ChildProcesses(proc fs.FS, of int) (map[int]string, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fields, err := statFields(proc, pid)
		if err != nil || fields[parent] != strconv.Itoa(of) {
			continue // another process's child, or it has exited
		}
		line, err := fs.ReadFile(proc, path.Join(e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		out[pid] = strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
	}
	return out, nil
}
