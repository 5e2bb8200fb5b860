package scenario

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// DefaultSpeed makes a self-test of four minutes last four seconds.
const DefaultSpeed = 60

// Options are the demo's flags.
type Options struct {
	// Servers in the rack, at least 6, see layout.
	Servers int
	// Speed is how many times faster than real servers the simulated ones are.
	Speed float64
	// Keep leaves everything running at the end, until Ctrl-C.
	Keep bool
	// Plain tells the story line by line, also on a terminal.
	Plain bool
	// HideGPUs takes a GPU from so many servers that were promised to be healthy: the demo then fails, and says by which check.
	HideGPUs int
	// Break spoils one MIG server: mig-unit takes the unit off its disk, mig-profile cuts its GPUs otherwise than it was told.
	// The demo then fails, and says by which check. Empty: nothing.
	Break string
	// Samples replaces the samples that are built in: the folder config/samples of a checkout.
	Samples fs.FS
	// Timeout bounds each step of the story.
	Timeout time.Duration
	// Out gets the story.
	Out io.Writer
}

// Validate says what is wrong with the flags.
func (o Options) Validate() error {
	switch {
	case o.Servers < 6 || o.Servers > 64:
		return fmt.Errorf("--servers %d: expected 6 to 64: two for MIG, two for DRA, one that is pinned and released, one that loses a GPU; further ones are the first pool's", o.Servers)
	case o.Speed < 1 || o.Speed > 1000:
		return fmt.Errorf("--speed %g: expected 1 to 1000; 60 makes a self-test of four minutes last four seconds", o.Speed)
	case o.HideGPUs < 0 || o.HideGPUs > o.wholeGPUServers()-2:
		return fmt.Errorf("--hide-gpus %d: expected 0 to %d, the servers of the first pool that are not broken anyway", o.HideGPUs, o.wholeGPUServers()-2)
	case o.Break != "" && breakages[o.Break] == nil:
		return fmt.Errorf("--break %s: expected one of %s", o.Break, strings.Join(slices.Sorted(maps.Keys(breakages)), ", "))
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %s: expected more than 0", o.Timeout)
	}
	return nil
}
