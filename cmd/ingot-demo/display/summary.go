package display

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Life is how long one Machine was in each phase.
type Life struct {
	Machine string
	Phases  map[string]time.Duration
}

// Promise is something that the demo says will happen.
type Promise struct {
	Text string
	Kept bool
	// Detail says what was seen, and for a broken promise where to look.
	Detail string
}

// Phases is the order in which the summary lists phases.
var Phases = []string{"Pending", "Claiming", "Provisioning", "Joining", "Validating", "Draining", "Releasing"}

// Cost is what the manager asked of its API server for one thing.
type Cost struct {
	// What was asked for, and how often per Machine.
	What       string
	PerMachine float64
	// Detail says how it is made up.
	Detail string
}

// Summary renders the phases with median and slowest Machine, what it cost, and the promises.
func Summary(lives []Life, costs []Cost, promises []Promise) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s %8s %9s  %s\n", "PHASE", "MEDIAN", "SLOWEST", "MACHINE")
	for _, phase := range Phases {
		writePhase(&b, phase, lives)
	}
	for _, c := range costs {
		fmt.Fprintf(&b, "%-14s %8.1f per Machine  %s\n", c.What, c.PerMachine, c.Detail)
	}
	b.WriteString("\n")
	for _, p := range promises {
		mark := "ok  "
		if !p.Kept {
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

func writePhase(b *strings.Builder, phase string, lives []Life) {
	type entry struct {
		machine string
		took    time.Duration
	}
	var all []entry
	for _, l := range lives {
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
