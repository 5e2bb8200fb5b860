package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rollout/simulation"
)

// maxDuration is the virtual time after which a simulation ends without a result.
const maxDuration = 366 * 24 * time.Hour

// Story is what `-o json` prints.
type Story struct {
	NodeType string `json:"nodeType"`
	Machines int    `json:"machines"`
	// FailRate and Seed as they were given.
	FailRate float64 `json:"failRate"`
	Seed     uint64  `json:"seed"`
	// Lines are what happens, each after so much time.
	Lines []StoryLine `json:"lines"`
	// Outcome is how it ends.
	Outcome simulation.Outcome `json:"outcome"`
	// Took is the whole time, such as 3h20m.
	Took string `json:"took"`
}

// StoryLine is one event of the simulation.
type StoryLine struct {
	After string `json:"after"`
	Text  string `json:"text"`
}

func writeReport(f fleet, opts options, out io.Writer) error {
	sim := f.newSimulation(opts)
	if err := sim.Run(maxDuration); err != nil {
		return errors.New("the rollout does not end within a year: allow more Machines to be unavailable at once, or a shorter bake time")
	}
	if opts.json {
		return writeJSONReport(f, opts, sim, out)
	}
	o := sim.Outcome()
	_, err := fmt.Fprintf(out, "NodeType %s: %s, at most %s unavailable, canary %d for %s, failure budget %d; fail rate %g%%, seed %d\n\n%s\nIn the end: %s\n",
		f.nodeType, machinesText(f), f.policy.MaxUnavailable.String(), f.policy.Canary, simulation.FormatDuration(f.policy.Bake), f.policy.FailureBudget,
		opts.failRate*100, opts.seed, simulation.FormatLines(startTime, sim.Lines()), endText(o))
	return err
}

func writeJSONReport(f fleet, opts options, sim *simulation.Simulation, out io.Writer) error {
	o := sim.Outcome()
	s := Story{NodeType: f.nodeType, Machines: f.size(), FailRate: opts.failRate, Seed: opts.seed, Outcome: o, Took: simulation.FormatDuration(o.Elapsed)}
	for _, l := range sim.Lines() {
		s.Lines = append(s.Lines, StoryLine{simulation.FormatDuration(l.At.Sub(startTime)), l.Text})
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

func machinesText(f fleet) string {
	noun := "Machines"
	if f.size() == 1 {
		noun = "Machine"
	}
	if f.shares[0].pool.Name == "" {
		return fmt.Sprintf("%d %s without a NodePool", f.size(), noun)
	}
	pools := 0
	for _, s := range f.shares {
		if s.size > 0 {
			pools++
		}
	}
	if pools == 1 {
		return fmt.Sprintf("%d %s in 1 NodePool", f.size(), noun)
	}
	return fmt.Sprintf("%d %s in %d NodePools", f.size(), noun, pools)
}

func endText(o simulation.Outcome) string {
	t := o.Targets
	text := fmt.Sprintf("%s after %s; %d of %d moved, %d failed, at most %d unavailable at once.", o.Phase, simulation.FormatDuration(o.Elapsed), t.Done, t.Total, t.Failed, o.MaxUnavailable)
	switch o.Phase {
	case v1alpha1.RolloutStopped:
		return text + "\nIt stops there until you set the NodeType back, or pause and resume it to go on in spite of the failures."
	case v1alpha1.RolloutDone:
		return text
	default:
		return text + "\nIt waits there: what failed counts as unavailable. Mend or delete those Machines, and it goes on."
	}
}
