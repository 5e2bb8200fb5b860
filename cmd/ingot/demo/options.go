package demo

import (
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/ingot-dev/ingot/test/rack"
)

// Options are the demo's flags.
type Options struct {
	// Servers in the rack, at least 3: one is pinned and released, one is broken, the rest are the pool's.
	Servers int
	// Speed is how many times faster than real servers the simulated ones are.
	Speed float64
	// Keep leaves everything running at the end, until Ctrl-C.
	Keep bool
	// Plain tells the story line by line, also on a terminal.
	Plain bool
	// HideGPUs takes a GPU from so many servers that were promised to be healthy: the demo then fails, and says by which check.
	HideGPUs int
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
	case o.Servers < 3 || o.Servers > 64:
		return fmt.Errorf("--servers %d: expected 3 to 64: one is pinned and released, one loses a GPU, the rest are the pool's", o.Servers)
	case o.Speed < 1 || o.Speed > 1000:
		return fmt.Errorf("--speed %g: expected 1 to 1000; 60 makes a self-test of four minutes last four seconds", o.Speed)
	case o.HideGPUs < 0 || o.HideGPUs > o.Servers-2:
		return fmt.Errorf("--hide-gpus %d: expected 0 to %d, the servers of the pool that are not broken anyway", o.HideGPUs, o.Servers-2)
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %s: expected more than 0", o.Timeout)
	}
	return nil
}

// serverSpecs lists the rack: the last server loses a GPU at every boot, and so do those that HideGPUs asks for.
func serverSpecs(o Options) []rack.ServerSpec {
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		panic(err) // a profile that is compiled in
	}
	specs := make([]rack.ServerSpec, o.Servers)
	for i := range specs {
		specs[i] = rack.ServerSpec{Name: fmt.Sprintf("server-%02d", i+1), Profile: profile}
		if i == o.Servers-1 || i > 0 && i <= o.HideGPUs {
			specs[i].Faults.MissingGPUs = 1
		}
	}
	return specs
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
