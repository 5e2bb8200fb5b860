package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	"github.com/ingot-dev/ingot/controllers/host"
	"github.com/ingot-dev/ingot/test/environment"
)

// writeReport writes the results. It must be called while the processes run.
func (c *comparison) writeReport(w io.Writer) error {
	requests, _, err := c.readRequests()
	if err != nil {
		return err
	}
	p := &printer{w: w}
	writeMachine(p)
	p.writeLine("%d nodes of fake-hardware, deploy interface fake; each side requests of %d hosts at the same time and lists every %s\n", c.options.machines, host.DefaultWorkers, ironic.DefaultListAge)
	if c.isSeparate {
		p.writeLine("Ironic has a processor of its own\n")
	}
	claims := make([][]time.Time, len(c.rounds))
	for i, r := range c.rounds {
		claims[i] = claimsBetween(requests, r.ours.ordered, r.ours.end())
	}
	c.writeTimes(p, claims)
	c.writeIronicCalls(p)
	c.writePolls(p)
	c.writeSteps(p, claims)
	c.writeCPU(p)
	return p.err
}

// claimsBetween returns when each host was first patched between the times, which claims it.
func claimsBetween(requests []environment.Request, from, to time.Time) []time.Time {
	first := map[string]time.Time{}
	for _, r := range requestsBetween(requests, from, to) {
		if r.Verb != "patch" || r.Resource != "baremetalhosts" || r.Subresource != "" || r.Code >= http.StatusBadRequest {
			continue
		}
		if at, isKnown := first[r.Name]; !isKnown || r.At.Before(at) {
			first[r.Name] = r.At
		}
	}
	return slices.SortedFunc(maps.Values(first), time.Time.Compare)
}

// writeTimes writes the table of the times, and the median of the ratios.
func (c *comparison) writeTimes(p *printer, claims [][]time.Time) {
	p.writeHeader("round", "first claim to last active, s", "order to last active, s", "bare loop, s", "ratio from the claim", "ratio from the order")
	columns := make([][]float64, 5)
	for i, r := range c.rounds {
		began := r.ours.ordered
		if len(claims[i]) > 0 {
			began = claims[i][0]
		}
		claim, order, bare := r.ours.end().Sub(began).Seconds(), r.ours.end().Sub(r.ours.ordered).Seconds(), r.bare.end().Sub(r.bare.ordered).Seconds()
		for n, value := range []float64{claim, order, bare, claim / bare, order / bare} {
			columns[n] = append(columns[n], value)
		}
		writeTimesRow(p, fmt.Sprint(i+1), columns, func(values []float64) float64 { return values[i] })
	}
	writeTimesRow(p, "median", columns, median[float64])
	p.writeLine("")
}

func writeTimesRow(p *printer, name string, columns [][]float64, of func([]float64) float64) {
	row := []string{name}
	for n, format := range []string{"%.1f", "%.1f", "%.1f", "%.2f", "%.2f"} {
		row = append(row, fmt.Sprintf(format, of(columns[n])))
	}
	p.writeRow(row...)
}

// median returns the value in the middle, the higher one of two; 0 of none.
func median[T cmp.Ordered](values []T) (middle T) {
	if len(values) > 0 {
		middle = slices.Sorted(slices.Values(values))[len(values)/2]
	}
	return middle
}

// callCount is what is counted of one kind of calls.
type callCount struct {
	count, refused int
	took           time.Duration
}

// countCalls counts calls by their kind, pages of the list left out.
func countCalls(calls []ironicCall) map[string]callCount {
	out := map[string]callCount{}
	for _, call := range calls {
		if call.isPage {
			continue
		}
		n := out[call.kind]
		n.count++
		n.took += call.took
		if call.code >= http.StatusBadRequest {
			n.refused++
		}
		out[call.kind] = n
	}
	return out
}

// mostOfOneNode returns the greatest number of calls for one node.
func mostOfOneNode(calls []ironicCall) int {
	byNode := map[string]int{}
	for _, call := range calls {
		if call.node != "" {
			byNode[call.node]++
		}
	}
	most := 0
	for _, n := range byNode {
		most = max(most, n)
	}
	return most
}

// callsOf returns the calls of one side in all rounds.
func (c *comparison) callsOf(side func(ironicRound) ironicDeployment) (calls []ironicCall) {
	for _, r := range c.rounds {
		calls = append(calls, side(r).calls...)
	}
	return calls
}

func (r ironicRound) byIngot() ironicDeployment { return r.ours }
func (r ironicRound) byLoop() ironicDeployment  { return r.bare }

// writeIronicCalls writes the calls for a deployed node by kind.
func (c *comparison) writeIronicCalls(p *printer) {
	p.writeLine("Calls of Ironic beside the list, per node:\n")
	p.writeHeader("", "to register", "to deploy", "of these refused", "ms each", "bare loop: to deploy", "of these refused", "ms each")
	ours, bare := c.callsOf(ironicRound.byIngot), c.callsOf(ironicRound.byLoop)
	deploy, loop := countCalls(ours), countCalls(bare)
	register := countCalls(c.registration)
	kinds := map[string]bool{}
	for _, m := range []map[string]callCount{deploy, loop, register} {
		for kind := range m {
			kinds[kind] = true
		}
	}
	perNode := func(count, rounds int) string {
		return fmt.Sprintf("%.2f", float64(count)/float64(rounds*c.options.machines))
	}
	each := func(n callCount) string {
		if n.count == 0 {
			return ""
		}
		return fmt.Sprint((n.took / time.Duration(n.count)).Milliseconds())
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		o, b := deploy[kind], loop[kind]
		p.writeRow(kind, perNode(register[kind].count, 1), perNode(o.count, len(c.rounds)), perNode(o.refused, len(c.rounds)), each(o),
			perNode(b.count, len(c.rounds)), perNode(b.refused, len(c.rounds)), each(b))
	}
	most := 0
	for _, r := range c.rounds {
		most = max(most, mostOfOneNode(r.ours.calls))
	}
	total := 0
	for _, n := range deploy {
		total += n.count
	}
	p.writeLine("\nTo deploy a node: %s calls, at most %d for one node\n", perNode(total, len(c.rounds)), most)
}

// writePolls writes how often the nodes were listed.
func (c *comparison) writePolls(p *printer) {
	for _, side := range []struct {
		name string
		of   func(ironicRound) ironicDeployment
	}{{"Ingot", ironicRound.byIngot}, {"The bare loop", ironicRound.byLoop}} {
		span := time.Duration(0)
		for _, r := range c.rounds {
			span += side.of(r).until.Sub(side.of(r).ordered)
		}
		var took time.Duration
		lists, pages, wide := 0, 0, 0
		for _, call := range c.callsOf(side.of) {
			if !call.isPage {
				continue
			}
			pages++
			took += call.took
			if !call.isNext {
				lists++
			}
			if !call.isNarrow {
				wide++
			}
		}
		// Each deployment begins with a list.
		perInterval := max(float64(lists-len(c.rounds)), 0) * ironic.DefaultListAge.Seconds() / span.Seconds()
		p.writeLine("%s has listed the nodes %d times in %.0f s, after the first ones %.2f times in %s, in %d pages of %.0f ms; pages without fields or without a limit: %d",
			side.name, lists, span.Seconds(), perInterval, ironic.DefaultListAge, pages, took.Seconds()*1000/float64(max(pages, 1)), wide)
	}
	p.writeLine("")
}

// writeSteps writes when the nodes were at each step, in all rounds.
func (c *comparison) writeSteps(p *printer, claims [][]time.Time) {
	steps := map[string]map[string][]time.Duration{"Ingot": {}, "bare loop": {}}
	note := func(side, step string, at time.Duration) { steps[side][step] = append(steps[side][step], at) }
	for i, r := range c.rounds {
		for _, at := range claims[i] {
			note("Ingot", "claimed", at.Sub(r.ours.ordered))
		}
		for side, d := range map[string]ironicDeployment{"Ingot": r.ours, "bare loop": r.bare} {
			for _, call := range d.calls {
				if call.node != "" && call.code < http.StatusBadRequest {
					note(side, call.kind, call.at.Sub(d.ordered))
				}
			}
			for _, at := range d.active {
				note(side, "active", at.Sub(d.ordered))
			}
		}
	}
	p.writeLine("Seconds after the order, in all rounds:\n")
	p.writeHeader("", "step", "first", "half", "last")
	for _, side := range []string{"Ingot", "bare loop"} {
		names := slices.SortedFunc(maps.Keys(steps[side]), func(a, b string) int { return cmp.Compare(median(steps[side][a]), median(steps[side][b])) })
		for _, name := range names {
			at := steps[side][name]
			p.writeRow(side, name, formatSeconds(slices.Min(at)), formatSeconds(median(at)), formatSeconds(slices.Max(at)))
		}
	}
	p.writeLine("")
}

// writeCPU writes what the processes have taken until the last node was active, of each the median of the rounds.
func (c *comparison) writeCPU(p *printer) {
	p.writeHeader("process", "CPU s, Ingot", "CPU s, bare loop")
	for _, name := range comparisonProcesses {
		var ours, bare []time.Duration
		for _, r := range c.rounds {
			ours, bare = append(ours, r.ours.cpu[name]), append(bare, r.bare.cpu[name])
		}
		p.writeRow(name, formatSeconds(median(ours)), formatSeconds(median(bare)))
	}
}
