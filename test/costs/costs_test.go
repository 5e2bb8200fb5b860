package costs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/test/fleet"
	"github.com/ingot-dev/ingot/test/require"
)

var (
	isMeasured = flag.Bool("measure", false, "measure, which needs the machine for itself for minutes")
	update     = flag.Bool("update", false, "write the table instead of comparing with it")
	keep       = flag.String("keep", "", "`folder` in which logs and audit logs are kept")
	provider   = flag.String("provider", "", "measure and compare this `provider` alone")
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == fleet.RackCommand {
		if err := fleet.ServeRack(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// tableFile is the checked-in table.
const tableFile = "costs.md"

func TestAMachineCostsWhatTheTableSays(t *testing.T) {
	if !*isMeasured {
		t.Skip("make costs runs it")
	}
	var measured Costs
	providers := chooseProviders()
	for i, size := range sizes {
		measured[i] = Ledger{}
		for _, provider := range providers {
			measure(t, measured[i], provider, size)
		}
	}
	table, others := readTable(t, providers)
	if *update {
		writeTable(t, measured.with(others))
		return
	}
	for _, finding := range compare(table, measured) {
		t.Error(finding)
	}
	if t.Failed() {
		t.Log("what a Machine costs has changed: find the cause, or run make costs ARGS=-update and say in the commit why it is worth it")
	}
}

// readTable returns what the table says of the providers, and what it says of others.
func readTable(t *testing.T, providers []string) (of, others Costs) {
	t.Helper()
	text, err := os.Open(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	all, err := readCosts(text)
	if err != nil {
		t.Fatal(err)
	}
	return all.filter(func(r Row) bool { return slices.Contains(providers, r.Provider) }), all.filter(func(r Row) bool { return !slices.Contains(providers, r.Provider) })
}

// chooseProviders returns who installs the servers in this run: one of two, which the commit chooses, and both in the deep suite.
func chooseProviders() []string {
	providers := []string{fleet.Redfish, fleet.Metal3}
	switch all, seed := require.Sample(); {
	case *provider != "":
		return []string{*provider}
	case all:
		return providers
	default:
		return providers[seed%2:][:1]
	}
}

// measure adds the costs of one life to the ledger.
func measure(t *testing.T, into Ledger, provider string, size int) {
	t.Helper()
	dir := filepath.Join(*keep, fmt.Sprintf("%s-%d", provider, size))
	if *keep == "" {
		dir = t.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := measureLife(t.Context(), dir, provider, size, t.Output())
	if err != nil {
		t.Fatalf("%s, %d Machines: %v", provider, size, err)
	}
	for row, n := range l.ledger {
		into[row] = n
	}
	all, refusedOnes := l.ledger.writes()
	t.Logf("%s, %d Machines: the manager took %.0f ms of CPU a Machine and at most %d MiB; %d writes, of which %d were refused",
		provider, size, l.usage.CPU.Seconds()*1000/float64(size), l.usage.Peak>>20, all, refusedOnes)
}

// preface stands before the table.
const preface = `# What one Machine costs

Requests of the manager for each Machine of a fleet of 30 and of 120, counted from the audit logs of the management cluster and of three tenants' clusters with
the samples as they ship, requests to the BMCs, and bytes of stored objects. Written by ` + "`make costs ARGS=-update`" + `; a test compares.

`

func writeTable(t *testing.T, c Costs) {
	t.Helper()
	var text strings.Builder
	text.WriteString(preface)
	if err := c.write(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tableFile, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
