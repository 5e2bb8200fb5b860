package costs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/test/environment"
)

// Step is a part of the life of a fleet.
type Step string

// The steps, in their order.
const (
	// Register is from the start of the manager until every host is available.
	Register Step = "register"
	// Provision is from the order of the Machines until all are admitted: claim, installation, join, validation, admission.
	Provision Step = "provision"
	// Roll moves every Machine to another revision.
	Roll Step = "roll"
	// Release is from the deletion of the Machines until every host is erased and available again.
	Release Step = "release"
	// Stored is no step: its rows are bytes of the objects that are stored when all Machines are admitted.
	Stored Step = "stored"
)

// steps in their order.
var steps = []Step{Register, Provision, Roll, Release, Stored}

// Where a row was counted.
const management, tenants, bmcs = "management", "tenants", "BMCs"

// Row names a count.
type Row struct {
	Provider string
	Step     Step
	// Where is the cluster whose API server got the requests, or the BMCs.
	Where string
	// What is the verb and the resource of requests, or what else is counted.
	What string
}

// Ledger holds counts of one run.
type Ledger map[Row]int

// span is the time of a step.
type span struct {
	step     Step
	from, to time.Time
}

// addRequests counts the requests that came in during one of the spans. Refused ones are counted a second time, with their status.
// Renewals of leases are left out: they come by the clock, whatever the manager does.
func (l Ledger) addRequests(provider, where string, spans []span, requests []environment.Request) {
	for _, r := range requests {
		if r.Resource == "leases" {
			continue
		}
		for _, s := range spans {
			if r.At.Before(s.from) || !r.At.Before(s.to) {
				continue
			}
			what := r.Verb + " " + strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")
			l[Row{provider, s.step, where, what}]++
			if r.Code >= 400 {
				l[Row{provider, s.step, where, fmt.Sprintf("%s %s %d", refused, what, r.Code)}]++
			}
		}
	}
}

// refused begins the name of a row of refused requests.
const refused = "refused:"

// writes returns how many writes a ledger has, and how many of them were refused.
func (l Ledger) writes() (all, refusedOnes int) {
	for row, n := range l {
		verb, _, _ := strings.Cut(strings.TrimPrefix(row.What, refused+" "), " ")
		if row.Where == bmcs || !(environment.Request{Verb: verb}).IsMutating() {
			continue
		}
		if strings.HasPrefix(row.What, refused) {
			refusedOnes += n
		} else {
			all += n
		}
	}
	return all, refusedOnes
}

// sortedRows returns the rows of all ledgers in the order of the table.
func sortedRows(ledgers ...Ledger) []Row {
	all := map[Row]bool{}
	for _, l := range ledgers {
		for row := range l {
			all[row] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Provider, a.Provider), slices.Index(steps, a.Step)-slices.Index(steps, b.Step), cmp.Compare(a.Where, b.Where), cmp.Compare(a.What, b.What))
	})
}
