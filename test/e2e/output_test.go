package e2e

import (
	"strings"
	"sync"
	"time"
)

// output collects what a program says while it runs.
type output struct {
	mu      sync.Mutex
	text    strings.Builder
	arrived chan struct{}
}

// Write takes more of it.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.arrived <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

// String returns what was said so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until the program has said the text.
func (o *output) await(text string, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.arrived:
		case <-timer.C:
			return false
		}
	}
	return true
}
