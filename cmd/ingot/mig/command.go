package mig

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Command is `ingot mig`.
func Command() *cobra.Command {
	return cli.NewGroup("mig", "Find layouts of MIG instances", layoutsCommand())
}

func layoutsCommand() *cobra.Command {
	var model string
	var contains []string
	var output offline.Output
	c := &cobra.Command{
		Use:   "layouts --gpu MODEL",
		Short: "List the layouts of MIG instances that a GPU can have",
		Long: `Lists every valid layout to which no instance can be added, with the placements of its
instances in an order in which they can be created one after another: PROFILE@START, the
memory slice at which the instance starts. Whatever is part of such a layout is valid too.

With --contains only those that have at least so many instances of each profile; when there
is none, the rule that is broken, and what would fit.`,
		Example: "  ingot mig layouts --gpu H100-SXM5-80GB --contains 3g.40gb=1,1g.10gb=2",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON, err := output.IsJSON(cmd)
			if err != nil {
				return err
			}
			if model == "" {
				return cli.Usagef(cmd, "expected --gpu, a model such as H100-SXM5-80GB")
			}
			wanted, problem := parseContains(contains)
			if problem != "" {
				return cli.Usagef(cmd, "--contains: %s", problem)
			}
			found, err := FindLayouts(model, wanted)
			if err != nil {
				return err
			}
			if asJSON {
				return offline.WriteJSON(cmd.OutOrStdout(), found)
			}
			return found.write(cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&model, "gpu", "", "model as NodeTypes name it, such as H100-SXM5-80GB")
	f.StringSliceVar(&contains, "contains", nil, "instances that a layout must have: PROFILE=COUNT,...")
	offline.AddOutputFlag(c, &output)
	return c
}

// instanceCount is so many instances of a profile, as it was written.
type instanceCount struct {
	profile string
	count   int
}

// parseContains reads PROFILE=COUNT; problem says what was expected.
func parseContains(parts []string) (wishes []instanceCount, problem string) {
	for _, part := range parts {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		count, err := strconv.Atoi(number)
		if name == "" || err != nil || count < 1 {
			return nil, fmt.Sprintf("expected PROFILE=COUNT such as 3g.40gb=1, seen %q", part)
		}
		wishes = append(wishes, instanceCount{name, count})
	}
	return wishes, ""
}
