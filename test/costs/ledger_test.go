package costs

import (
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/fleet"
)

// patches is a row of three requests a Machine in a small and in a large fleet.
var patches = Row{Provider: "redfish", Step: Provision, Where: management, What: "patch machines/status"}

func costsOf(row Row, small, large int) Costs { return Costs{{row: small}, {row: large}} }

func TestRequestsAreCountedInTheStepInWhichTheyCame(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	l := Ledger{}
	l.addRequests("redfish", management, []span{{Register, at(0), at(10)}, {Provision, at(10), at(20)}}, []environment.Request{
		{At: at(5), Verb: "get", Resource: "secrets", Code: 200},
		{At: at(10), Verb: "patch", Resource: "machines", Subresource: "status", Code: 409},
		{At: at(11), Verb: "patch", Resource: "machines", Subresource: "status", Code: 200},
		{At: at(11), Verb: "update", Resource: "leases", Code: 200},
		{At: at(25), Verb: "get", Resource: "secrets", Code: 200},
	})
	want := Ledger{
		{"redfish", Register, management, "get secrets"}: 1, patches: 2,
		{"redfish", Provision, management, "refused: patch machines/status 409"}: 1,
	}
	if len(l) != len(want) {
		t.Errorf("counted %v", l)
	}
	for row, n := range want {
		if l[row] != n {
			t.Errorf("%v: %d, want %d", row, l[row], n)
		}
	}
	if all, refusedOnes := l.writes(); all != 2 || refusedOnes != 1 {
		t.Errorf("%d writes, %d refused", all, refusedOnes)
	}
}

func TestATableIsReadAsItWasWritten(t *testing.T) {
	largest := Row{Provider: "metal3", Step: Stored, Where: management, What: largestObject}
	was := Costs{{patches: 91, largest: 12345}, {patches: 361, largest: 23456}}
	var text strings.Builder
	text.WriteString(preface)
	if err := was.write(&text); err != nil {
		t.Fatal(err)
	}
	is, err := readCosts(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range was {
		for row, n := range was[i] {
			if is[i][row] != n {
				t.Errorf("%v: %d, want %d", row, is[i][row], n)
			}
		}
	}
	if _, err := readCosts(strings.NewReader(tableHead + "\n| redfish | roll |\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line without counts: %v", err)
	}
}

func TestWhatCostsMoreOrGrowsIsFound(t *testing.T) {
	bytes := Row{Provider: "redfish", Step: Stored, Where: management, What: "bytes of all Machines"}
	refusals := Row{Provider: "redfish", Step: Roll, Where: tenants, What: "refused: patch nodes 409"}
	base := costsOf(patches, 90, 360)
	for _, c := range []struct {
		name     string
		measured Costs
		// says is a part of the only finding; empty: there is none.
		says string
	}{
		{"the same", base, ""},
		{"a little more", costsOf(patches, 93, 370), ""},
		{"one request more for each Machine", costsOf(patches, 120, 480), "costs more: 4.00 a Machine, and 3.00 in the table"},
		{"one request less", costsOf(patches, 60, 240), "costs less"},
		{"more in the large fleet alone", costsOf(patches, 90, 440), "grows with the fleet"},
		{"a new row", Costs{{patches: 90, bytes: 30}, {patches: 360, bytes: 120_000}}, "bytes of all Machines"},
		{"refused writes", Costs{{patches: 90, refusals: 1}, {patches: 360, refusals: 9}}, "10 of 450 writes are refused, and 2% may be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := strings.Join(compare(base, c.measured), "\n")
			if (findings == "") != (c.says == "") || !strings.Contains(findings, c.says) {
				t.Errorf("found %q, want %q", findings, c.says)
			}
		})
	}
}

// TestTheTableIsWithinItsBounds compares the checked-in table with itself: no row grows with the fleet, and few writes are refused.
func TestTheTableIsWithinItsBounds(t *testing.T) {
	table, _ := readTable(t, []string{fleet.Redfish, fleet.Metal3})
	for _, finding := range compare(table, table) {
		t.Error(finding)
	}
}
