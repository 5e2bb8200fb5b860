package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

var update = flag.Bool("update", false, "write the golden files")

func simulate(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), Command(), args, &out, &err)
	return status, out.String(), err.String()
}

func TestTheStoryIsAsWritten(t *testing.T) {
	for _, c := range []struct {
		golden string
		args   []string
	}{
		{"all-is-well.txt", nil},
		{"half-of-them-fail.txt", []string{"--machines", "12", "--fail-rate", "50%", "--seed", "9"}},
		{"within-the-budget.txt", []string{"--machines", "6", "--fail-rate", "0.2", "--seed", "6"}},
		{"broken-and-without-host.txt", []string{"--broken", "1", "--without-host", "2"}},
		{"broken-takes-all-room.txt", []string{"--broken", "3"}},
		{"without-pools.json", []string{"--nodetype", "plain", "--machines", "2", "-o", "json"}},
	} {
		args := append([]string{"-f", "testdata/fleet.yaml"}, c.args...)
		if c.golden != "without-pools.json" {
			args = append(args, "--nodetype", "h100")
		}
		status, stdout, stderr := simulate(args...)
		if status != cli.ExitOK || stderr != "" {
			t.Fatalf("%v: status %d: %s", args, status, stderr)
		}
		file := filepath.Join("testdata", c.golden)
		if *update {
			if err := os.WriteFile(file, []byte(stdout), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if stdout != string(want) {
			t.Errorf("%s is stale: write it with -update and read it. It would be\n%s", file, stdout)
		}
	}
}

func TestTheSeedDecidesTheStoryAndNothingElseDoes(t *testing.T) {
	tell := func(seed string) string {
		_, stdout, _ := simulate("-f", "testdata/fleet.yaml", "--nodetype", "h100", "--fail-rate", "0.1", "--seed", seed)
		return stdout
	}
	first := tell("1")
	if again := tell("1"); again != first {
		t.Error("the same seed gives another story")
	}
	if tell("2") == first {
		t.Error("the seed changes nothing")
	}
}

func TestTheMachinesAreSpreadAsTheReplicasAre(t *testing.T) {
	all, err := read([]string{"testdata/fleet.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for machines, want := range map[int][2]int{0: {3, 6}, 9: {3, 6}, 1: {0, 1}, 100: {33, 67}} {
		f, err := all.newFleet(options{nodeType: "h100", machines: machines})
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{f.shares[0].size, f.shares[1].size}; got != want {
			t.Errorf("%d Machines: %v in %v, want %v", machines, got, f.shares, want)
		}
	}
}

func TestWithoutFailuresItIsDoneWithinTheBudget(t *testing.T) {
	for _, machines := range []string{"1", "2", "17", "200"} {
		_, stdout, stderr := simulate("-f", "testdata/fleet.yaml", "--nodetype", "plain", "--machines", machines, "-o", "json")
		var s Story
		if err := json.Unmarshal([]byte(stdout), &s); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		if s.Outcome.Phase != v1alpha1.RolloutDone || s.Outcome.MaxUnavailable > max(1, s.Machines/10) {
			t.Errorf("%s Machines: %s with %d unavailable at once", machines, s.Outcome.Phase, s.Outcome.MaxUnavailable)
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	fleet := "testdata/fleet.yaml"
	for _, c := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{}, cli.ExitUsage, []string{"expected -f", "usage:", "simulate -f FILE"}},
		{[]string{"-f", "testdata/none.yaml", "--machines", "3"}, cli.ExitFailed, []string{"testdata/none.yaml", "no such file"}},
		{[]string{"-f", "simulate_test.go", "--machines", "3"}, cli.ExitFailed, []string{"simulate_test.go"}},
		{[]string{"-f", fleet, "--machines", "3"}, cli.ExitFailed, []string{"h100, plain", "--nodetype"}},
		{[]string{"-f", fleet, "--nodetype", "h200"}, cli.ExitFailed, []string{"NodeType h200", "h100, plain", fleet}},
		{[]string{"-f", fleet, "--nodetype", "plain"}, cli.ExitFailed, []string{"--machines"}},
		{[]string{"-f", "testdata/wrong.yaml", "--machines", "3"}, cli.ExitFailed, []string{"spec.rollout.maxUnavailable", "seen 0%"}},
		{[]string{"-f", "testdata/typo.yaml", "--machines", "3"}, cli.ExitFailed, []string{"testdata/typo.yaml", "maxUnavailabel"}},
		{[]string{"-f", fleet, "--machines", "0"}, cli.ExitUsage, []string{"--machines 0", "1 to 5000"}},
		{[]string{"-f", fleet, "--machines", "1000000"}, cli.ExitUsage, []string{"1 to 5000"}},
		{[]string{"-f", fleet, "--fail-rate", "often"}, cli.ExitUsage, []string{"--fail-rate often", "5%"}},
		{[]string{"-f", fleet, "--fail-rate", "7"}, cli.ExitUsage, []string{"probability"}},
		{[]string{"-f", fleet, "--fail-rate", "NaN"}, cli.ExitUsage, []string{"probability"}},
		{[]string{"-f", fleet, "-o", "yaml"}, cli.ExitUsage, []string{"text or json"}},
		{[]string{"-f", fleet, "--broken", "-1"}, cli.ExitUsage, []string{"--broken -1"}},
		{[]string{"-f", fleet, "--nodetype", "h100", "--broken", "5", "--without-host", "5"}, cli.ExitFailed, []string{"10 Machines, of 9"}},
		{[]string{"-f", fleet, "--seed", "x"}, cli.ExitUsage, []string{"--seed", "usage:"}},
		{[]string{"-f", fleet, "more"}, cli.ExitUsage, []string{"usage:"}},
	} {
		status, stdout, stderr := simulate(c.args...)
		if status != c.status || stdout != "" {
			t.Errorf("%v: status %d, want %d; standard output %q", c.args, status, c.status, stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%v: %q does not say %q", c.args, stderr, want)
			}
		}
	}
}
