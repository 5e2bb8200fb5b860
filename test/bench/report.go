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
)

const mib = 1 << 20

// report prints what was measured. The processes have to run still, for nothing to be written to the audit logs twice.
func (f *fleet) report(w io.Writer) error {
	management, tenants, err := f.requests()
	if err != nil {
		return err
	}
	p := &printer{w: w}
	n := f.options.machines
	p.line("%s, %d CPUs, %s of memory; %s; load before the end %s", runtime.GOARCH, runtime.NumCPU(), memory(), runtime.Version(), load())
	p.line("%d Machines; image %.1f MiB, served as %.1f MiB", n, float64(f.image.DiskBytes)/mib, float64(f.image.SizeBytes)/mib)
	p.line("\nFrom the order to the last Ready: %.1f s; before it, from the manager's start to the last host available: %.1f s", f.admitted.at.Sub(f.ordered.at).Seconds(), f.registered.at.Sub(f.started.at).Seconds())
	f.spread(p)
	p.table("process", "CPU s to register", "CPU s to admit", "CPU ms per Machine", "peak MiB")
	for _, name := range processes {
		register, admit := f.registered.usage[name].CPU-f.started.usage[name].CPU, f.admitted.usage[name].CPU-f.ordered.usage[name].CPU
		p.row(name, seconds(register), seconds(admit), fmt.Sprintf("%.0f", admit.Seconds()*1000/float64(n)), fmt.Sprintf("%d", f.admitted.usage[name].Peak/mib))
	}
	p.line("\nThe manager's requests, per Machine, by the API servers' audit logs:\n")
	f.kinds(p, "management", management)
	f.kinds(p, "tenant", tenants)
	f.totals(p, append(slices.Clone(management), tenants...))
	if f.steady != nil {
		f.atRest(p, append(slices.Clone(management), tenants...))
	}
	return p.err
}

// requests are those of the manager at either cluster.
func (f *fleet) requests() (management, tenants []environment.Request, err error) {
	collect := func(log, user string) (out []environment.Request, err error) {
		err = environment.ReadRequests(f.env.AuditLog(log), user, func(w environment.Request) { out = append(out, w) })
		return out, err
	}
	if management, err = collect("management", f.env.ManagerUser()); err != nil {
		return nil, nil, err
	}
	tenants, err = collect(tenantName, tenantUser)
	return management, tenants, err
}

// spread says when Machines became Ready.
func (f *fleet) spread(p *printer) {
	var at []time.Duration
	for _, m := range f.machines {
		if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			at = append(at, c.LastTransitionTime.Sub(f.ordered.at))
		}
	}
	slices.Sort(at)
	if len(at) > 0 {
		p.line("Ready, to the second: the first after %.0f s, half after %.0f s, 90%% after %.0f s, the last after %.0f s\n",
			at[0].Seconds(), at[len(at)/2].Seconds(), at[len(at)*9/10].Seconds(), at[len(at)-1].Seconds())
	}
}

// kind of a request, as the tables name it.
func kind(w environment.Request) string {
	return w.Verb + " " + w.Resource + strings.TrimSuffix("/"+w.Subresource, "/")
}

// kinds lists the requests to one cluster, the most frequent first.
func (f *fleet) kinds(p *printer, cluster string, requests []environment.Request) {
	type counts struct{ register, admit, refused int }
	all := map[string]*counts{}
	for _, w := range requests {
		c := all[kind(w)]
		if c == nil {
			c = &counts{}
			all[kind(w)] = c
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
	p.table(cluster+" cluster", "to register a host", "to admit a Machine", "of these refused")
	for _, name := range names {
		p.row(name, f.each(all[name].register), f.each(all[name].admit), f.each(all[name].refused))
	}
	p.line("")
}

// each is a count per Machine.
func (f *fleet) each(n int) string {
	return fmt.Sprintf("%.2f", float64(n)/float64(f.options.machines))
}

// totals sums up what a Machine costs.
func (f *fleet) totals(p *printer, all []environment.Request) {
	requests, events, reads := 0, 0, 0
	for _, w := range within(all, f.ordered.at, f.admitted.at) {
		switch {
		case !w.IsMutating():
			reads++
		case w.Resource == "events":
			events++
		default:
			requests++
		}
	}
	p.line("To admit a Machine: %s mutating requests beside Events, %s Events; %s reads", f.each(requests), f.each(events), f.each(reads))
}

func within(all []environment.Request, from, to time.Time) []environment.Request {
	var out []environment.Request
	for _, w := range all {
		if !w.At.Before(from) && w.At.Before(to) {
			out = append(out, w)
		}
	}
	return out
}

// atRest prints the steady state.
func (f *fleet) atRest(p *printer, all []environment.Request) {
	s := f.steady
	span := s.to.at.Sub(s.from.at)
	p.line("\nSteady state, watched for %.0f s:\n", span.Seconds())
	p.table("process", "CPU, % of one core", "resident at the beginning, MiB", "at the end")
	for _, name := range processes {
		from, to := s.from.usage[name], s.to.usage[name]
		p.row(name, fmt.Sprintf("%.2f", 100*(to.CPU-from.CPU).Seconds()/span.Seconds()), fmt.Sprint(from.Resident/mib), fmt.Sprint(to.Resident/mib))
	}
	quarter := max(len(s.resident)/4, 1)
	p.line("\nThe manager's memory: %.1f MiB in the first quarter, %.1f MiB in the last; slope %+.1f MiB per hour",
		mean(s.resident[:quarter])/mib, mean(s.resident[len(s.resident)-quarter:])/mib, growth(s.resident, span/time.Duration(len(s.resident)))/mib)
	writes, counts := 0, map[string]int{}
	for _, w := range within(all, s.from.at, s.to.at) {
		counts[kind(w)]++
		if w.IsMutating() {
			writes++
		}
	}
	p.line("Writes of the manager, beside its lease: %d, %.3f per second; all its requests: %v", writes, float64(writes)/span.Seconds(), counts)
	r := &s.reads
	p.line("BMCs: %d requests in %d reads; per minute %v; not read at all: %d", r.requests, r.count, r.perMinute, r.never())
	if len(r.gaps) > 0 {
		slices.Sort(r.gaps)
		p.line("Between two reads of one BMC: %.0f s to %.0f s, half within %.0f s", r.gaps[0].Seconds(), r.gaps[len(r.gaps)-1].Seconds(), r.gaps[len(r.gaps)/2].Seconds())
	}
	p.line("The longest that a BMC was not read from the beginning or until the end of the watch: %.0f s", r.open.Seconds())
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }

// memory and load are this machine's; "?" where it does not tell.
func memory() string {
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

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table begins one, and row adds to it.
func (p *printer) table(head ...string) {
	p.row(head...)
	p.line("|%s", strings.Repeat("---|", len(head)))
}

func (p *printer) row(cells ...string) { p.line("| %s |", strings.Join(cells, " | ")) }
