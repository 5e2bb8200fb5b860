package explain

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Command is `ingot explain`.
func Command() *cobra.Command {
	var flags offline.Flags
	var output offline.Output
	c := &cobra.Command{
		Use:   "explain -f FILE...",
		Short: "Tell what a NodeType does to a node, and what the node must then advertise",
		Long: `Reads a NodeType, its OSImage and its NodeProvider from files and tells the plan: kernel
arguments, modules, packages, files, units, labels; and the expectation: what a node must
show before it is admitted. What is impossible is refused with the rule that it breaks, by
the same code that the manager uses. No cluster is asked.

In JSON, resources has the exact count of each resource by name; absent has what must not
be advertised, where a name that ends in / stands for all names that begin with it and are
not in resources; labels has the labels that the Node then has, those that kubelet
registers (nodeLabels) and those that vendors' software sets where it runs (expectedLabels).`,
		Example: "  ingot explain -f nodetype.yaml -f osimage.yaml -f nodeprovider.yaml --nodetype h100 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON, err := output.JSON(cmd)
			if err != nil {
				return err
			}
			files, err := flags.Open(cmd)
			if err != nil {
				return err
			}
			shape, err := files.ShapeOf(flags.NodeType)
			if err != nil {
				return err
			}
			if err := shape.Tell(cmd.ErrOrStderr()); err != nil {
				return err
			}
			plan, err := shape.Plan()
			if err != nil {
				return fmt.Errorf("NodeType %s is impossible: %w", shape.NodeType.Name, err)
			}
			e := Explain(shape, plan)
			if asJSON {
				return offline.WriteJSON(cmd.OutOrStdout(), e)
			}
			return e.write(cmd.OutOrStdout())
		},
	}
	offline.AddFiles(c, &flags)
	offline.AddNodeType(c, &flags)
	offline.AddOutput(c, &output)
	return c
}
