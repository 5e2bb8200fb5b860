package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// separateIronic gives Ironic one processor and all other processes the others, where there are two or more. At a site Ironic runs on another machine; here it
// has one thread that works, and the more threads compete with it, the less of the machine it gets.
func separateIronic(pids map[string]int) error {
	processors := runtime.NumCPU()
	if processors < 2 {
		return nil
	}
	var own, others unix.CPUSet
	own.Set(processors - 1)
	for n := range processors - 1 {
		others.Set(n)
	}
	errs := []error{setProcessors(os.Getpid(), &others)}
	for name, pid := range pids {
		set := &others
		if name == ironicName {
			set = &own
		}
		errs = append(errs, setProcessors(pid, set))
	}
	return errors.Join(errs...)
}

// setProcessors sets on which processors the threads of a process run. A thread that is created later runs on those of its creator.
func setProcessors(pid int, set *unix.CPUSet) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("set the processors of process %d: %w", pid, err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, set)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("set the processors of process %d: %w", pid, err)
		}
	}
	return nil
}
