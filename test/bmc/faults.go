package bmc

import (
	"net/http"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// All stands for every time where a fault counts.
const All = -1

// Faults are what goes wrong with a BMC. Counts fall to 0 as they are used up; All never does. The zero value is a healthy BMC.
type Faults struct {
	// Hang is how many requests are accepted and never answered.
	Hang int
	// ServerErrors is how many requests are answered with 500.
	ServerErrors int
	// Busy is how many requests are answered with 503 and Retry-After, as by a BMC that is not ready yet.
	Busy int
	// BusyResets is how many resets are answered with 503, while other requests are answered.
	BusyResets int
	// SilentPowerOn is how many power-ons are accepted without effect (Dell), SilentPowerOff the same for power-offs.
	SilentPowerOn, SilentPowerOff int
	// NullBootTarget means that a boot override is accepted, reads back null and has no effect (Dell).
	NullBootTarget bool
	// KeepsBootTarget means that a boot override is accepted and stays what it was.
	KeepsBootTarget bool
	// StaleETags means that every change of the boot override is answered with 412, whatever ETag it has.
	StaleETags bool
	// StaleMedia means that the BMC takes an image for inserted that is not, and refuses every insert until the next eject (iDRAC).
	StaleMedia bool
	// LostImages is how many insertions are accepted whose image the BMC cannot fetch.
	LostImages int
	// NoBasic means that somebody has switched Basic authentication off.
	NoBasic bool
	// LazyCollections means that each collection is answered with 503 the first time it is asked for, while it is being loaded.
	LazyCollections bool
	// SharedNIC means that the BMC has no port of its own (NC-SI), and that the port has no link while the server is off.
	SharedNIC bool
}

// isDue reports whether a fault with this count happens at the next request.
func isDue(count int) bool { return count > 0 || count == All }

// oneLess returns what is left of a count when its fault has happened once more.
func oneLess(count int) int {
	if count == All {
		return All
	}
	return count - 1
}

// SetFaults replaces the faults, and forgets which collections were loaded.
func (b *BMC) SetFaults(faults Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = faults
	b.loaded = map[string]bool{}
}

// Faults returns the faults that are left.
func (b *BMC) Faults() Faults {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.faults
}

// answer is what a BMC does with a request before it looks at what the request asks for.
type answer int

const (
	answerProperly answer = iota
	answerNever
	answerServerError
	answerBusy
	answerNoLink
	answerEmpty
)

// nextAnswer returns how the request is to be answered, and uses up the fault that decides it.
func (b *BMC) nextAnswer(r *http.Request) answer {
	power := b.options.Machine.Power()
	b.mu.Lock()
	defer b.mu.Unlock()
	path := strings.TrimRight(r.URL.Path, "/")
	switch {
	case b.faults.SharedNIC && power == hardware.PowerOff:
		return answerNoLink
	case isDue(b.faults.Hang):
		b.faults.Hang = oneLess(b.faults.Hang)
		return answerNever
	case isDue(b.faults.ServerErrors):
		b.faults.ServerErrors = oneLess(b.faults.ServerErrors)
		return answerServerError
	case isDue(b.faults.Busy):
		b.faults.Busy = oneLess(b.faults.Busy)
		return answerBusy
	case r.Method == http.MethodGet && path != "" && path == b.options.Personality.Wire.Empty:
		return answerEmpty
	case b.isUnloadedCollection(path):
		b.loaded[path] = true
		return answerBusy
	}
	return answerProperly
}

// isUnloadedCollection reports whether the path is a collection that nobody has asked for since LazyCollections was set.
func (b *BMC) isUnloadedCollection(path string) bool {
	document, ok := b.tree[path]
	return b.faults.LazyCollections && ok && document["Members"] != nil && path != pathSystems && !b.loaded[path]
}

// answerWithFault answers a request, or never does, as a fault has it.
func (b *BMC) answerWithFault(w http.ResponseWriter, r *http.Request, fault answer) {
	switch fault {
	case answerNever:
		select {
		case <-r.Context().Done():
		case <-b.stopping:
		}
	case answerEmpty:
		w.WriteHeader(http.StatusOK)
	case answerNoLink:
		// The client is not made to wait for its time-out: the connection ends without an answer.
		panic(http.ErrAbortHandler)
	case answerServerError:
		b.refuse(w, http.StatusInternalServerError, "InternalError", "The request failed due to an internal service error.")
	case answerBusy:
		w.Header().Set("Retry-After", "1")
		b.refuse(w, http.StatusServiceUnavailable, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in 1 seconds.")
	}
}
