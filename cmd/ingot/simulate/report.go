package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/rollout/rehearsal"
)

// longest is the virtual time after which a simulation is given up.
const longest = 366 * 24 * time.Hour

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
	Outcome rehearsal.Outcome `json:"outcome"`
	// Took is the whole time, such as 3h20m.
	Took string `json:"took"`
}

// StoryLine is one thing that happens.
type StoryLine struct {
	After string `json:"after"`
	Text  string `json:"text"`
}

func report(f fleet, opts options, out io.Writer) error {
	p := f.play(opts)
	if !p.Run(longest) {
		return errors.New("the rollout does not end within a year: allow more Machines to be unavailable at once, or a shorter bake time")
	}
	if opts.json {
		return reportJSON(f, opts, p, out)
	}
	o := p.Outcome()
	_, err := fmt.Fprintf(out, "NodeType %s: %s, at most %s unavailable, canary %d for %s, failure budget %d; fail rate %g%%, seed %d\n\n%s\nIn the end: %s\n",
		f.nodeType, machines(f), f.policy.MaxUnavailable.String(), f.policy.Canary, rehearsal.Plain(f.policy.Bake), f.policy.FailureBudget,
		opts.failRate*100, opts.seed, rehearsal.Text(begin, p.Lines()), ending(o))
	return err
}

func reportJSON(f fleet, opts options, p *rehearsal.Play, out io.Writer) error {
	o := p.Outcome()
	s := Story{NodeType: f.nodeType, Machines: f.size(), FailRate: opts.failRate, Seed: opts.seed, Outcome: o, Took: rehearsal.Plain(o.Took)}
	for _, l := range p.Lines() {
		s.Lines = append(s.Lines, StoryLine{rehearsal.Plain(l.At.Sub(begin)), l.Text})
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

func machines(f fleet) string {
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

func ending(o rehearsal.Outcome) string {
	t := o.Targets
	text := fmt.Sprintf("%s after %s; %d of %d moved, %d failed, at most %d unavailable at once.", o.Phase, rehearsal.Plain(o.Took), t.Done, t.Total, t.Failed, o.MostUnavailable)
	switch o.Phase {
	case v1alpha1.RolloutStopped:
		return text + "\nIt stops there until you set the NodeType back, or pause and resume it to go on in spite of the failures."
	case v1alpha1.RolloutDone:
		return text
	default:
		return text + "\nIt waits there: what failed counts as unavailable. Mend or delete those Machines, and it goes on."
	}
}
