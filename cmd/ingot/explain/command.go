package explain

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/connect"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Command is `ingot explain`.
func Command() *cobra.Command {
	var flags offline.Flags
	var machine string
	c := &cobra.Command{
		Use:   "explain -f FILE... | --installed MACHINE",
		Short: "Tell what a NodeType does to a node, and what the node must then advertise",
		Long: `Reads a NodeType, its OSImage and its NodeProvider from files and tells the plan: kernel
arguments, modules, packages, files, units, labels; and the expectation: what a node must
show before it is admitted. What is impossible is refused with the rule that it breaks, by
the same code that the manager uses. No cluster is asked.

With --installed MACHINE it tells instead what a Machine of the cluster was installed with and
is judged by, and what the NodeType's target would change.

In JSON, resources has the exact count of each resource by name; absent has what must not
be advertised, where a name that ends in / stands for all names that begin with it and are
not in resources; labels has the labels that the Node then has, those that kubelet
registers (nodeLabels) and those that vendors' software sets where it runs (expectedLabels).`,
		Example: "  ingot explain -f nodetype.yaml -f osimage.yaml -f nodeprovider.yaml --nodetype h100 -o json\n  ingot explain --installed research/training-57f6t",
		Args:    cobra.NoArgs,
	}
	cluster := connect.AddFlags(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := cluster.IsJSON(cmd)
		if err != nil {
			return err
		}
		e, err := explainFromFlags(cmd, flags, cluster, machine)
		if err != nil {
			return err
		}
		if asJSON {
			return offline.WriteJSON(cmd.OutOrStdout(), e)
		}
		return e.write(cmd.OutOrStdout())
	}
	offline.AddFileFlag(c, &flags)
	offline.AddNodeTypeFlag(c, &flags)
	c.Flags().StringVar(&machine, "installed", "", "explain what this Machine of the cluster was installed with, in place of manifests")
	return c
}

// explainFromFlags returns the explanation that the flags ask for.
func explainFromFlags(cmd *cobra.Command, flags offline.Flags, cluster *connect.Flags, machine string) (Explanation, error) {
	if machine != "" {
		if len(flags.Paths) > 0 || flags.NodeType != "" {
			return Explanation{}, cli.Usagef(cmd, "--installed reads a cluster: give it without -f and --nodetype")
		}
		k, err := cluster.Client(cmd)
		if err != nil {
			return Explanation{}, err
		}
		return explainInstalled(cmd.Context(), k, cluster.Namespace(), machine)
	}
	files, err := flags.Open(cmd)
	if err != nil {
		return Explanation{}, err
	}
	inputs, err := files.FindNodeInputs(flags.NodeType)
	if err != nil {
		return Explanation{}, err
	}
	if err := inputs.WriteWarning(cmd.ErrOrStderr()); err != nil {
		return Explanation{}, err
	}
	plan, err := inputs.Plan()
	if err != nil {
		return Explanation{}, fmt.Errorf("NodeType %s is impossible: %w", inputs.NodeType.Name, err)
	}
	return Explain(inputs, plan), nil
}
