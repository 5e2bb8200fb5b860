package display

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// MachineDurations is how long one Machine was in each phase.
type MachineDurations struct {
	Machine string
	Phases  map[string]time.Duration
}

// Assertion is a result that the demo expects.
type Assertion struct {
	Text   string
	Passed bool
	// Detail says what was observed instead and where to look, for an assertion that failed.
	Detail string
}

// Phases are the phases of a Machine in the order of the summary.
var Phases = []string{"Pending", "Claiming", "Provisioning", "Joining", "Validating", "Draining", "Releasing"}

// Cost is the number of requests that the manager sent to its API server.
type Cost struct {
	// What names the requests, PerMachine is their number per Machine.
	What       string
	PerMachine float64
	// Detail lists the parts of the number.
	Detail string
}

// Summary returns the summary of a run: for each phase the median duration and the slowest Machine, then the costs and the assertions.
func Summary(durations []MachineDurations, costs []Cost, assertions []Assertion) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s %8s %9s  %s\n", "PHASE", "MEDIAN", "SLOWEST", "MACHINE")
	for _, phase := range Phases {
		writePhase(&b, phase, durations)
	}
	for _, c := range costs {
		fmt.Fprintf(&b, "%-14s %8.1f per Machine  %s\n", c.What, c.PerMachine, c.Detail)
	}
	b.WriteString("\n")
	for _, p := range assertions {
		mark := "ok  "
		if !p.Passed {
			mark = "FAIL"
		}
		fmt.Fprintf(&b, "%s  %s", mark, p.Text)
		if p.Detail != "" {
			fmt.Fprintf(&b, "\n      %s", strings.ReplaceAll(p.Detail, "\n", "\n      "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func writePhase(b *strings.Builder, phase string, durations []MachineDurations) {
	type entry struct {
		machine string
		took    time.Duration
	}
	var all []entry
	for _, l := range durations {
		if d, ok := l.Phases[phase]; ok {
			all = append(all, entry{l.Machine, d})
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b entry) int { return int(a.took - b.took) })
	slowest := all[len(all)-1]
	fmt.Fprintf(b, "%-14s %7.1fs %8.1fs  %s\n", phase, all[len(all)/2].took.Seconds(), slowest.took.Seconds(), slowest.machine)
}
