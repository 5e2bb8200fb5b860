package baremetaloperator

import "sync"

// Operation names a method of a Server in a fault.
type Operation string

// Operations that can have a fault.
const (
	Registering Operation = "register"
	Adopting    Operation = "adopt"
	Inspecting  Operation = "inspect"
	Preparing   Operation = "prepare"
	Looking     Operation = "look"
	Powering    Operation = "power"
	Servicing   Operation = "service"
	Deploying   Operation = "deploy"
	Cleaning    Operation = "clean"
	Detaching   Operation = "detach"
	Deleting    Operation = "delete"
)

// Faults are what goes wrong with the operations on a server. The zero value has none.
type Faults struct {
	mu       sync.Mutex
	problems map[Operation]int
	delays   map[Operation]int
	// failed are the operations whose last call failed.
	failed map[Operation]bool
}

// Fail makes the next calls of the operation fail. A negative number makes all of them fail.
func (f *Faults) Fail(op Operation, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problems == nil {
		f.problems = map[Operation]int{}
	}
	f.problems[op] = times
}

// Delay makes the next calls of the operation find it under way. A negative number makes it never end.
func (f *Faults) Delay(op Operation, calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.delays == nil {
		f.delays = map[Operation]int{}
	}
	f.delays[op] = calls
}

// Next takes the fault of this call of the operation. It is done when there is none. An operation that failed begins again: it is under way at first.
func (f *Faults) Next(op Operation) Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.problems[op]; n != 0 {
		f.problems[op] = n - 1
		if f.failed == nil {
			f.failed = map[Operation]bool{}
		}
		f.failed[op] = true
		return Progress{Problem: "the server is made to fail to " + string(op)}
	}
	if n := f.delays[op]; n != 0 {
		f.delays[op] = n - 1
		return Progress{}
	}
	if f.failed[op] {
		f.failed[op] = false
		return Progress{}
	}
	return Progress{Done: true}
}
