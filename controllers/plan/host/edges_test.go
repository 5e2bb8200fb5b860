package host

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

var update = flag.Bool("update", false, "render host.md again")

// diagram renders the life as a Mermaid state diagram. anyState is drawn once.
func diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> registering : created\n")
	for _, s := range []metal3.ProvisioningState{metal3.StateExternallyProvisioned, metal3.StatePoweringOffBeforeDelete, anyState, foreignState} {
		fmt.Fprintf(&b, "    state \"%s\" as %s\n", titles[s], node(s))
	}
	for _, table := range [][]edge{edges, removalEdges} {
		for _, e := range table {
			fmt.Fprintf(&b, "    %s --> %s : %s\n", node(e.from), node(e.to), e.when)
		}
	}
	return b.String()
}

var titles = map[metal3.ProvisioningState]string{
	metal3.StateExternallyProvisioned: string(metal3.StateExternallyProvisioned), metal3.StatePoweringOffBeforeDelete: string(metal3.StatePoweringOffBeforeDelete),
	anyState: "any state but deleting", foreignState: "a state of another system",
}

func node(s metal3.ProvisioningState) string {
	if s == goneState {
		return "[*]"
	}
	return strings.ReplaceAll(string(s), " ", "_")
}

func TestTheCheckedInDiagramIsRenderedFromTheTables(t *testing.T) {
	want := "# The life of a host\n\nRendered from edges.go; `go test ./controllers/plan/host -update` renders it again. Of the edges of a state, the first one whose\n" +
		"condition holds is followed. The last ones are those of a host that was deleted, and come before all others.\n\n```mermaid\n" + diagram() + "```\n"
	if *update {
		if err := os.WriteFile("host.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("host.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("host.md is stale: run go test ./controllers/plan/host -update")
	}
}

// reached are the states that edges lead to from one.
func reached(from metal3.ProvisioningState) map[metal3.ProvisioningState]bool {
	found, next := map[metal3.ProvisioningState]bool{from: true}, []metal3.ProvisioningState{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		for _, table := range [][]edge{edges, removalEdges} {
			for _, e := range table {
				if e.isFrom(at) && !found[e.to] {
					found[e.to] = true
					next = append(next, e.to)
				}
			}
		}
	}
	return found
}

func TestEveryStateCanBeReachedAndLeft(t *testing.T) {
	fromTheStart := reached(metal3.StateRegistering)
	for _, s := range []metal3.ProvisioningState{
		metal3.StateRegistering, metal3.StateInspecting, metal3.StateAvailable, metal3.StatePreparing, metal3.StateProvisioning, metal3.StateProvisioned, metal3.StateExternallyProvisioned,
		metal3.StateDeprovisioning, metal3.StatePoweringOffBeforeDelete, metal3.StateDeleting, foreignState,
	} {
		if !fromTheStart[s] && s != foreignState {
			t.Errorf("no way leads to %s", s)
		}
		ways := reached(s)
		if !ways[goneState] || !ways[metal3.StateAvailable] {
			t.Errorf("from %s no way leads to the pool, or none out", s)
		}
		if (len(stateSteps[s]) == 0) != (s == metal3.StateRegistering || s == foreignState) {
			t.Errorf("%s has %d steps: a state either passes on at once or says what is done in it", s, len(stateSteps[s]))
		}
	}
}
