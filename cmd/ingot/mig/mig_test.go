package mig

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

var update = flag.Bool("update", false, "write the golden files")

func run(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), Command(), args, &out, &err)
	return status, out.String(), err.String()
}

func TestTheLayoutsAreAsWritten(t *testing.T) {
	for golden, args := range map[string][]string{
		"h100.txt":          {"--gpu", "H100-SXM5-80GB"},
		"a100-contains.txt": {"--gpu", "A100-SXM4-40GB", "--contains", "3g.20gb=1,1g.5gb=2"},
	} {
		status, stdout, stderr := run(append([]string{"layouts"}, args...)...)
		if status != cli.ExitOK || stderr != "" {
			t.Fatalf("%v: status %d: %s", args, status, stderr)
		}
		file := filepath.Join("testdata", golden)
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
		if diff := cmp.Diff(string(want), stdout); diff != "" {
			t.Errorf("%s is stale: write it with -update and read it: %s", file, diff)
		}
	}
}

// TestPlacementsCanBeCreatedAndNothingCanBeAdded replays each layout: every instance at a start of its profile, without
// overlap; then no further instance of any profile fits in any arrangement of the same instances.
func TestPlacementsCanBeCreatedAndNothingCanBeAdded(t *testing.T) {
	status, stdout, stderr := run("layouts", "--gpu", "H100-SXM5-80GB", "-o", "json")
	if status != cli.ExitOK {
		t.Fatal(stderr)
	}
	var all Layouts
	if err := json.Unmarshal([]byte(stdout), &all); err != nil {
		t.Fatal(err)
	}
	profiles := map[string]Profile{}
	for _, p := range all.Profiles {
		profiles[p.Name] = p
	}
	seen := map[string]bool{}
	for _, l := range all.Layouts {
		taken, compute, counts := uint(0), 0, map[string]int{}
		for _, at := range l.Placements {
			p := profiles[at.Profile]
			bits := uint(1<<at.Size-1) << at.Start
			if at.Size != p.MemorySlices || !slices.Contains(p.Starts, at.Start) || taken&bits != 0 {
				t.Errorf("%v: %+v cannot be created there", l.Profiles, at)
			}
			taken |= bits
			compute += p.ComputeSlices
			counts[at.Profile]++
		}
		if diff := cmp.Diff(l.Profiles, counts); diff != "" || compute > all.ComputeSlices {
			t.Errorf("%v: %d compute slices, placements differ from counts: %s", l.Profiles, compute, diff)
		}
		text, err := json.Marshal(l.Profiles)
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(text)] {
			t.Errorf("%s is there twice", text)
		}
		seen[string(text)] = true
	}
	if !seen[`{"1g.10gb":7}`] || !seen[`{"3g.40gb":2}`] || !seen[`{"7g.80gb":1}`] {
		t.Errorf("well-known layouts are missing: %v", seen)
	}
}

func TestContainsLeavesOutTheOthers(t *testing.T) {
	_, stdout, _ := run("layouts", "--gpu", "H200-SXM-141GB", "--contains", "3g.71gb=1", "--contains", "2g.35gb=2", "-o", "json")
	var all Layouts
	if err := json.Unmarshal([]byte(stdout), &all); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if len(all.Layouts) == 0 {
		t.Error("no layout has 2g.35gb twice")
	}
	for _, l := range all.Layouts {
		if l.Profiles["2g.35gb"] < 2 {
			t.Errorf("%v has fewer than asked for", l.Profiles)
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   []string
	}{
		{nil, cli.ExitUsage, []string{"expected --gpu"}},
		{[]string{"--gpu", "H100"}, cli.ExitFailed, []string{`"H100" is not in the catalogue`, "H100-SXM5-80GB"}},
		{[]string{"--gpu", "H100-SXM5-80GB", "--contains", "3g.20gb=1"}, cli.ExitFailed, []string{`no MIG profile "3g.20gb"`, "3g.40gb"}},
		{[]string{"--gpu", "H100-SXM5-80GB", "--contains", "3g.40gb"}, cli.ExitUsage, []string{"PROFILE=COUNT", "usage:"}},
		{[]string{"--gpu", "H100-SXM5-80GB", "--contains", "3g.40gb=0"}, cli.ExitUsage, []string{"PROFILE=COUNT"}},
		{[]string{"--gpu", "H100-SXM5-80GB", "--contains", "3g.40gb=2,1g.10gb=1"}, cli.ExitFailed, []string{"does not fit on one H100-SXM5-80GB", "rule mig/", "of these fits {3g.40gb: 2}", "near it are"}},
		{[]string{"--gpu", "H100-SXM5-80GB", "-o", "yaml"}, cli.ExitUsage, []string{"text or json"}},
	} {
		status, stdout, stderr := run(append([]string{"layouts"}, c.args...)...)
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
