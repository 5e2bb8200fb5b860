package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestAWrongNumberOfArgumentsIsSaidWithTheUsage(t *testing.T) {
	for _, c := range []struct {
		check cobra.PositionalArgs
		args  []string
		want  string
	}{
		{cobra.ExactArgs(1), nil, "ingot: expected 1 argument, seen none\nusage: ingot look MACHINE"},
		{cobra.ExactArgs(2), []string{"a"}, "ingot: expected 2 arguments, seen a\n"},
		{cobra.MaximumNArgs(1), []string{"a", "b"}, "ingot: expected at most 1 argument, seen a b\n"},
		{cobra.NoArgs, []string{"a"}, "ingot: expected no argument, seen a\n"},
	} {
		root := NewGroup("ingot", "", &cobra.Command{Use: "look MACHINE", Args: c.check, Run: func(*cobra.Command, []string) {}})
		var stdout, stderr strings.Builder
		if status := Run(t.Context(), root, append([]string{"look"}, c.args...), &stdout, &stderr); status != ExitUsage || !strings.HasPrefix(stderr.String(), c.want) {
			t.Errorf("%v: status %d: %s", c.args, status, stderr.String())
		}
	}
}

func TestATableAndATerminalShowWhatCanBeSeen(t *testing.T) {
	var out strings.Builder
	if err := WriteTable(&out, [][]string{{"NAME", "MODEL"}, {"server-1", "x\nserver-2   y\x1b[2J"}}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME       MODEL\nserver-1   x server-2   y?[2J\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	if n, err := (visible{&out}).Write([]byte("a\n\x1b]0;title\x07b")); err != nil || n != 13 || out.String() != "a\n?]0;title?b" {
		t.Errorf("%d, %v: %q", n, err, out.String())
	}
}
