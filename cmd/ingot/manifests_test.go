package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

const samples = "../../config/samples"

func TestManifestsAreAnsweredForWithoutACluster(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"explain", "-f", samples, "--nodetype", "h100"}, "nvidia.com/gpu   8"},
		{[]string{"validate", "-f", samples}, ""},
		{[]string{"render", "-f", samples, "--nodetype", "h100", "--machine", "a", "--output", "user-data"}, "#cloud-config"},
		{[]string{"verify", "-f", samples, "--nodetype", "h100", "--node", "verify/testdata/node-h100.yaml"}, "Node training-7xk2p as NodeType h100: Pass"},
		{[]string{"mig", "layouts", "--gpu", "H100-SXM5-80GB", "--contains", "3g.40gb=2"}, "3g.40gb@0 3g.40gb@4"},
		{[]string{"convert", "vmetal", "convert/testdata/vmetal.yaml"}, "kind: NodeProvider"},
		{[]string{"convert", "metal3", "convert/clusterapi/testdata/site.yaml"}, "kind: NodePool"},
	} {
		if status, stdout, stderr := ingot(c.args...); status != cli.ExitOK || !strings.Contains(stdout, c.want) {
			t.Errorf("%v: status %d, want %q: %s%s", c.args, status, c.want, stdout, stderr)
		}
	}
	if status, _, stderr := ingot("explain"); status != cli.ExitUsage || !strings.Contains(stderr, "usage: ingot explain -f FILE") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// readmeCommand is a line of README.md's examples: a command, and perhaps a pipe or a comment behind it.
var readmeCommand = regexp.MustCompile(`(?m)^ingot (.*?)(?: \| .*| +# .*)?$`)

func TestTheCommandsOfTheREADMEExist(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	firstRack, err := os.ReadFile("../../config/first-rack.md")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, firstRack...)
	lines := readmeCommand.FindAllStringSubmatch(string(text), -1)
	if len(lines) < 15 {
		t.Errorf("README.md shows %d commands of ingot: the test no longer finds them", len(lines))
	}
	for _, line := range lines {
		for _, args := range alternatives(strings.Fields(line[1])) {
			command, rest, err := newRootCommand().Find(args)
			if err != nil || command.HasSubCommands() {
				t.Errorf("README.md: ingot %s: no such command: %v", strings.Join(args, " "), err)
				continue
			}
			if err := command.ParseFlags(rest); err != nil {
				t.Errorf("README.md: ingot %s: %v", strings.Join(args, " "), err)
			}
		}
	}
}

// alternatives returns the commands that a line such as "rollout pause|resume h100" stands for.
func alternatives(args []string) [][]string {
	for i, arg := range args {
		if !strings.Contains(arg, "|") {
			continue
		}
		var out [][]string
		for choice := range strings.SplitSeq(arg, "|") {
			out = append(out, append(append(append([]string{}, args[:i]...), choice), args[i+1:]...))
		}
		return out
	}
	return [][]string{args}
}
