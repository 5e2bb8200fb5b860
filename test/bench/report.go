package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/fleet"
)

const mib = 1 << 20

// writeReport writes the results. It must be called while the processes run: their end would add requests to the audit
// logs.
func (f *fleetRun) writeReport(w io.Writer) error {
	management, tenants, err := f.readRequests()
	if err != nil {
		return err
	}
	p := &printer{w: w}
	n := f.options.machines
	writeMachine(p)
	p.writeLine("%d Machines; image %.1f MiB, served as %.1f MiB", n, float64(f.Image.DiskBytes)/mib, float64(f.Image.SizeBytes)/mib)
	p.writeLine("\nFrom the order to the last Ready: %.1f s; before it, from the manager's start to the last host available: %.1f s", f.admitted.at.Sub(f.ordered.at).Seconds(), f.registered.at.Sub(f.started.at).Seconds())
	f.writeReadyTimes(p)
	p.writeHeader("process", "CPU s to register", "CPU s to admit", "CPU ms per Machine", "peak MiB")
	for _, name := range processes {
		register, admit := f.registered.usage[name].CPU-f.started.usage[name].CPU, f.admitted.usage[name].CPU-f.ordered.usage[name].CPU
		p.writeRow(name, formatSeconds(register), formatSeconds(admit), fmt.Sprintf("%.0f", admit.Seconds()*1000/float64(n)), fmt.Sprintf("%d", f.admitted.usage[name].Peak/mib))
	}
	p.writeLine("\nThe manager's requests, per Machine, by the API servers' audit logs:\n")
	f.writeRequests(p, "management", management)
	f.writeRequests(p, "tenant", tenants)
	f.writeTotals(p, append(slices.Clone(management), tenants...))
	if f.steady != nil {
		f.writeSteadyState(p, append(slices.Clone(management), tenants...))
	}
	return p.err
}

// writeMachine writes what the benchmark runs on.
func writeMachine(p *printer) {
	p.writeLine("%s, %d CPUs, %s of memory; %s; load before the end %s", runtime.GOARCH, runtime.NumCPU(), totalMemory(), runtime.Version(), loadAverage())
}

// readRequests reads the manager's requests from the audit logs of both clusters.
func (f *fleetRun) readRequests() (management, tenants []environment.Request, err error) {
	collect := func(log, user string) (out []environment.Request, err error) {
		err = environment.ReadRequests(f.Env.AuditLog(log), user, func(w environment.Request) { out = append(out, w) })
		return out, err
	}
	if management, err = collect("management", f.Env.ManagerUser()); err != nil {
		return nil, nil, err
	}
	tenants, err = collect(tenantName, fleet.TenantUser)
	return management, tenants, err
}

// writeReadyTimes writes when Machines became Ready.
func (f *fleetRun) writeReadyTimes(p *printer) {
	var at []time.Duration
	for _, m := range f.machines {
		if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			at = append(at, c.LastTransitionTime.Sub(f.ordered.at))
		}
	}
	slices.Sort(at)
	if len(at) > 0 {
		p.writeLine("Ready, to the second: the first after %.0f s, half after %.0f s, 90%% after %.0f s, the last after %.0f s\n",
			at[0].Seconds(), at[len(at)/2].Seconds(), at[len(at)*9/10].Seconds(), at[len(at)-1].Seconds())
	}
}

// requestKind returns the kind of a request as the tables name it.
func requestKind(w environment.Request) string {
	return w.Verb + " " + w.Resource + strings.TrimSuffix("/"+w.Subresource, "/")
}

// writeRequests writes the numbers of requests to one cluster by kind, the most frequent first.
func (f *fleetRun) writeRequests(p *printer, cluster string, requests []environment.Request) {
	type counts struct{ register, admit, refused int }
	all := map[string]*counts{}
	for _, w := range requests {
		c := all[requestKind(w)]
		if c == nil {
			c = &counts{}
			all[requestKind(w)] = c
		}
		switch {
		case w.At.Before(f.ordered.at):
			c.register++
		case w.At.Before(f.admitted.at):
			c.admit++
			if w.Code >= 400 {
				c.refused++
			}
		}
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(all[b].admit-all[a].admit, cmp.Compare(a, b)) })
	p.writeHeader(cluster+" cluster", "to register a host", "to admit a Machine", "of these refused")
	for _, name := range names {
		p.writeRow(name, f.perMachine(all[name].register), f.perMachine(all[name].admit), f.perMachine(all[name].refused))
	}
	p.writeLine("")
}

// perMachine formats a count divided by the number of Machines.
func (f *fleetRun) perMachine(n int) string {
	return fmt.Sprintf("%.2f", float64(n)/float64(f.options.machines))
}

// writeTotals writes the sum of the requests that admitting a Machine takes.
func (f *fleetRun) writeTotals(p *printer, all []environment.Request) {
	requests, events, reads := countRequests(requestsBetween(all, f.ordered.at, f.admitted.at))
	p.writeLine("To admit a Machine: %s mutating requests beside Events, %s Events; %s reads", f.perMachine(requests), f.perMachine(events), f.perMachine(reads))
}

// requestsBetween returns the requests from one time to another.
func requestsBetween(all []environment.Request, from, to time.Time) []environment.Request {
	var out []environment.Request
	for _, w := range all {
		if !w.At.Before(from) && w.At.Before(to) {
			out = append(out, w)
		}
	}
	return out
}

// writeSteadyState writes the results of the steady state.
func (f *fleetRun) writeSteadyState(p *printer, all []environment.Request) {
	s := f.steady
	span := s.to.at.Sub(s.from.at)
	p.writeLine("\nSteady state, watched for %.0f s:\n", span.Seconds())
	p.writeHeader("process", "CPU, % of one core", "resident at the beginning, MiB", "at the end")
	for _, name := range processes {
		from, to := s.from.usage[name], s.to.usage[name]
		p.writeRow(name, fmt.Sprintf("%.2f", 100*(to.CPU-from.CPU).Seconds()/span.Seconds()), fmt.Sprint(from.Resident/mib), fmt.Sprint(to.Resident/mib))
	}
	quarter := max(len(s.resident)/4, 1)
	p.writeLine("\nThe manager's memory: %.1f MiB in the first quarter, %.1f MiB in the last; slope %+.1f MiB per hour",
		mean(s.resident[:quarter])/mib, mean(s.resident[len(s.resident)-quarter:])/mib, growthPerHour(s.resident, span/time.Duration(len(s.resident)))/mib)
	writes, counts := 0, map[string]int{}
	for _, w := range requestsBetween(all, s.from.at, s.to.at) {
		counts[requestKind(w)]++
		if w.IsMutating() {
			writes++
		}
	}
	p.writeLine("Writes of the manager, beside its lease: %d, %.3f per second; all its requests: %v", writes, float64(writes)/span.Seconds(), counts)
	r := &s.reads
	p.writeLine("BMCs: %d requests in %d reads; per minute %v; not read at all: %d", r.requests, r.count, r.perMinute, r.unreadBMCs())
	if len(r.gaps) > 0 {
		slices.Sort(r.gaps)
		p.writeLine("Between two reads of one BMC: %.0f s to %.0f s, half within %.0f s", r.gaps[0].Seconds(), r.gaps[len(r.gaps)-1].Seconds(), r.gaps[len(r.gaps)/2].Seconds())
	}
	p.writeLine("The longest that a BMC was not read from the beginning or until the end of the watch: %.0f s", r.open.Seconds())
}

func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

// totalMemory returns the memory of this machine, or "?" when it is not known.
func totalMemory() string {
	text, err := os.ReadFile("/proc/meminfo")
	var kib int64
	if err == nil {
		_, err = fmt.Sscanf(string(text), "MemTotal: %d kB", &kib)
	}
	if err != nil {
		return "?"
	}
	return fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
}

// loadAverage returns the load averages of this machine, or "?" when they are not known.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) writeLine(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// writeHeader begins a table, and writeRow adds a row to it.
func (p *printer) writeHeader(head ...string) {
	p.writeRow(head...)
	p.writeLine("|%s", strings.Repeat("---|", len(head)))
}

func (p *printer) writeRow(cells ...string) { p.writeLine("| %s |", strings.Join(cells, " | ")) }
