package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Command is `ingot convert`.
func Command() *cobra.Command {
	return cli.NewGroup("convert", "Carry manifests of other systems over", vmetalCommand())
}

func vmetalCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "vmetal FILE...",
		Short: "Print Ingot's objects for vMetal's",
		Long: `Reads vMetal's objects (management.loft.sh/v1) from files, folders or standard input (-), and
prints Ingot's: an OSImage for an OSImage, a NodeProvider of kind metal3 for a NodeProvider,
and a NodeType for each of its node types. Properties keep their keys, so that the nearest
still wins; templates and SSH keys that they name are put in their place. Resources that are
GPUs, MIG instances, partitions or vGPUs become spec.gpu; the URL of an image becomes an
OSImage. BareMetalHosts can stay as they are.

What must be added, checked or was not carried over is a comment above each object, and a
line on standard error. Then: ingot validate -f the result.`,
		Example: "  ingot convert vmetal vmetal/ > ingot.yaml && ingot validate -f ingot.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := offline.Read(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			out := Convert(all)
			for _, f := range out.Findings {
				fmt.Fprintln(cmd.ErrOrStderr(), f)
			}
			// A file of templates, keys or profiles alone is part of a set, and no failure.
			if len(out.Objects) == 0 && !slices.ContainsFunc(all, isVMetal) {
				return fmt.Errorf("expected objects of %s such as NodeProvider and OSImage, seen none in %s", group, strings.Join(args, ", "))
			}
			return out.Write(cmd.OutOrStdout())
		},
	}
}
