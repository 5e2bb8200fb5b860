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
	// Message is what the Rollout says in the end.
	Message string `json:"message"`
	// Broken and WithoutHost as they were given. Otherwise is how it ends without them; nil: there are none.
	Broken      int        `json:"broken,omitempty"`
	WithoutHost int        `json:"withoutHost,omitempty"`
	Otherwise   *Otherwise `json:"otherwise,omitempty"`
	// Took is the whole time, such as 3h20m.
	Took string `json:"took"`
}

// Otherwise is how the same rollout ends when every Machine has a host and works before.
type Otherwise struct {
	Outcome simulation.Outcome `json:"outcome"`
	Took    string             `json:"took"`
}

// StoryLine is one event of the simulation.
type StoryLine struct {
	After string `json:"after"`
	Text  string `json:"text"`
}

func writeReport(f fleet, opts options, out io.Writer) error {
	sim, err := f.simulate(opts)
	if err != nil {
		return err
	}
	var otherwise *simulation.Simulation
	if opts.broken+opts.withoutHost > 0 {
		perfect := opts
		perfect.broken, perfect.withoutHost = 0, 0
		if otherwise, err = f.simulate(perfect); err != nil {
			return err
		}
	}
	if opts.json {
		return writeJSONReport(f, opts, sim, otherwise, out)
	}
	o := sim.Outcome()
	_, err = fmt.Fprintf(out, "NodeType %s: %s, at most %s unavailable, canary %d for %s, failure budget %d; fail rate %g%%, seed %d%s\n\n%s\nIn the end: %s\n",
		f.nodeType, machinesText(f), f.policy.MaxUnavailable.String(), f.policy.Canary, simulation.FormatDuration(f.policy.Bake), f.policy.FailureBudget,
		opts.failRate*100, opts.seed, imperfectText(opts), simulation.FormatLines(startTime, sim.Lines()), endText(o))
	if err == nil && otherwise != nil {
		without := otherwise.Outcome()
		_, err = fmt.Fprintf(out, "The Rollout says: %s.\nIf all had a host and worked before: %s after %s; %d of %d moved, %d failed, at most %d unavailable at once.\n",
			sim.Message(), without.Phase, simulation.FormatDuration(without.Elapsed), without.Targets.Done, without.Targets.Total, without.Targets.Failed, without.MaxUnavailable)
	}
	return err
}

// simulate runs a simulation to its end.
func (f fleet) simulate(opts options) (*simulation.Simulation, error) {
	sim := f.newSimulation(opts)
	if err := sim.Run(maxDuration); err != nil {
		return nil, errors.New("the rollout does not end within a year: allow more Machines to be unavailable at once, or a shorter bake time")
	}
	return sim, nil
}

// imperfectText says how many Machines are broken or have no host; empty: none.
func imperfectText(opts options) string {
	if opts.broken+opts.withoutHost == 0 {
		return ""
	}
	return fmt.Sprintf("; before it begins %d broken, %d without a host", opts.broken, opts.withoutHost)
}

func writeJSONReport(f fleet, opts options, sim, otherwise *simulation.Simulation, out io.Writer) error {
	o := sim.Outcome()
	s := Story{NodeType: f.nodeType, Machines: f.size(), FailRate: opts.failRate, Seed: opts.seed, Outcome: o, Took: simulation.FormatDuration(o.Elapsed),
		Message: sim.Message(), Broken: opts.broken, WithoutHost: opts.withoutHost}
	if otherwise != nil {
		s.Otherwise = &Otherwise{otherwise.Outcome(), simulation.FormatDuration(otherwise.Outcome().Elapsed)}
	}
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
		return text + "\nIt waits there: what is broken counts as unavailable. Mend or delete those Machines, or raise maxUnavailable, and it goes on."
	}
}
