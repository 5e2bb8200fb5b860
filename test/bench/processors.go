package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// startProcessors returns the processors that this program had before it gave any away.
var startProcessors = sync.OnceValues(func() (unix.CPUSet, error) {
	var all unix.CPUSet
	err := unix.SchedGetaffinity(os.Getpid(), &all)
	return all, err
})

// separateIronic gives Ironic one processor and all other processes the others, and reports whether there are two or more. At a site Ironic runs on another
// machine; here it has one thread that works, and the more threads compete with it, the less of the machine it gets.
func separateIronic(pids map[string]int) (isSeparate bool, err error) {
	var own, others unix.CPUSet
	all, err := startProcessors()
	if err != nil {
		return false, fmt.Errorf("read the processors: %w", err)
	}
	for n := range 64 * len(all) {
		switch {
		case !all.IsSet(n):
		case own.Count() == 0:
			own.Set(n)
		default:
			others.Set(n)
		}
	}
	if others.Count() == 0 {
		return false, nil
	}
	errs := []error{setProcessors(os.Getpid(), &others)}
	for name, pid := range pids {
		set := &others
		if name == ironicName {
			set = &own
		}
		errs = append(errs, setProcessors(pid, set))
	}
	return true, errors.Join(errs...)
}

// setProcessors sets on which processors the threads of a process run. A thread that is created later runs on those of its creator.
func setProcessors(pid int, set *unix.CPUSet) error {
	// A thread that is not moved yet may create another one meanwhile: until a look finds no new one.
	for moved := map[int]bool{}; ; {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return fmt.Errorf("set the processors of process %d: %w", pid, err)
		}
		before := len(moved)
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err == nil && !moved[id] {
				moved[id] = true
				err = unix.SchedSetaffinity(id, set)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("set the processors of process %d: %w", pid, err)
			}
		}
		if len(moved) == before {
			return nil
		}
	}
}
