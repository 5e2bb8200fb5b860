package bmc

import (
	"net/http"
	"strings"
)

// All stands for every time where a fault counts.
const All = -1

// Faults are what goes wrong with a BMC. Counts fall to 0 as they are used up; All never does. The zero value is a BMC in
// good health.
type Faults struct {
	// Hang is how many requests are accepted and never answered.
	Hang int
	// ServerErrors is how many requests are answered with 500.
	ServerErrors int
	// Busy is how many requests are answered with 503 and Retry-After, as by a BMC that is not ready yet.
	Busy int
	// SilentPowerOn is how many power-ons are accepted without effect (Dell), SilentPowerOff the same for ForceOff.
	SilentPowerOn, SilentPowerOff int
	// NullBootTarget: a boot override is accepted, reads back null and does nothing (Dell).
	NullBootTarget bool
	// NoBootMode: there is no BootSourceOverrideMode, and sending it is an error (Supermicro).
	NoBootMode bool
	// LazyCollections: each collection is answered with 503 the first time it is asked for, while it is being loaded.
	LazyCollections bool
}

// use takes one from a count and says whether there was any.
func use(count *int) bool {
	if *count > 0 {
		*count--
		return true
	}
	return *count == All
}

// SetFaults replaces the faults; LazyCollections forgets what was loaded.
func (b *BMC) SetFaults(faults Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = faults
	b.loaded = map[string]bool{}
}

// Faults are those that are left.
func (b *BMC) Faults() Faults {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.faults
}

// misbehave answers, or fails to answer, as the faults say; it returns false where none befalls the request.
func (b *BMC) misbehave(w http.ResponseWriter, r *http.Request) bool {
	b.mu.Lock()
	hang := use(&b.faults.Hang)
	broken := !hang && use(&b.faults.ServerErrors)
	busy := !hang && !broken && (use(&b.faults.Busy) || b.loading(r))
	b.mu.Unlock()
	switch {
	case hang:
		select {
		case <-r.Context().Done():
		case <-b.stopping:
		}
	case broken:
		refuse(w, http.StatusInternalServerError, "InternalError", "The request failed due to an internal service error.")
	case busy:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in 1 seconds.")
	}
	return hang || broken || busy
}

// loading says whether the request is the first for a collection that is loaded when it is asked for.
func (b *BMC) loading(r *http.Request) bool {
	path := strings.TrimRight(r.URL.Path, "/")
	document, ok := b.tree[path]
	if !b.faults.LazyCollections || !ok || document["Members"] == nil || path == pathSystems || b.loaded[path] {
		return false
	}
	b.loaded[path] = true
	return true
}
