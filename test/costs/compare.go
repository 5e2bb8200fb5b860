package costs

import (
	"fmt"
	"strings"
)

// Bounds of the comparisons.
const (
	// maxChange is the part by which a row may differ from the table, where that is more than slack.
	maxChange = 0.05
	// maxGrowth is the part by which a Machine may cost more in the large fleet than in the small one, beside a third of slack.
	maxGrowth = 0.10
	// slack is the number of requests a Machine by which a row may differ: less than one for each, and more than what is written again because a
	// baremetal-operator wrote first.
	slack = 0.75
	// slackBytes is the same for rows of bytes.
	slackBytes = 100.0
	// maxRefused is the part of the writes that API servers may refuse.
	maxRefused = 0.02
)

func (r Row) slack() float64 {
	if r.Step == Stored {
		return slackBytes
	}
	return slack
}

// compare returns what is wrong with new costs, given those of the table: one finding for each row that costs more or less than there, or more per Machine in
// the large fleet than in the small one, and one where too many writes are refused.
func compare(table, measured Costs) []string {
	var out []string
	for _, row := range sortedRows(append(table[:], measured[:]...)...) {
		for i, size := range sizes {
			was, is := table.perMachine(i, row), measured.perMachine(i, row)
			if difference := is - was; max(difference, -difference) > max(was*maxChange, row.slack()) {
				out = append(out, fmt.Sprintf("%s, %d Machines: %s %s: %.2f a Machine, and %.2f in the table", row.Provider, size, row.where(), verdict(difference), is, was))
			}
		}
		if small, large := measured.perMachine(0, row), measured.perMachine(1, row); large > small*(1+maxGrowth)+row.slack()/3 {
			out = append(out, fmt.Sprintf("%s: %s grows with the fleet: %.2f a Machine of %d, and %.2f of %d", row.Provider, row.where(), large, sizes[1], small, sizes[0]))
		}
	}
	all, refusedOnes := 0, 0
	for _, l := range measured {
		writes, refusals := l.writes()
		all, refusedOnes = all+writes, refusedOnes+refusals
	}
	if float64(refusedOnes) > maxRefused*float64(all) {
		out = append(out, fmt.Sprintf("%d of %d writes are refused, and %.0f%% may be", refusedOnes, all, 100*maxRefused))
	}
	return out
}

func (r Row) where() string {
	return fmt.Sprintf("%s, %s, %s", r.Step, r.Where, strings.TrimSpace(r.What))
}

func verdict(difference float64) string {
	if difference > 0 {
		return "costs more"
	}
	return "costs less, so that the table is not true any more"
}
