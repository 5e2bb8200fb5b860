package validate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Command is `ingot validate`.
func Command() *cobra.Command {
	var flags offline.Flags
	var output offline.Output
	var opts Options
	c := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "List all that is wrong with manifests",
		Long: `Reads manifests and prints one line for each thing that is wrong:

  FILE:LINE: OBJECT: FIELD: MESSAGE (RULE)

Each of Ingot's objects, and each BareMetalHost, is judged as an API server would: unknown
fields, schema, rules. Then what needs several objects: references among them, the kind of
provider, the format of the OSImage, the GPU presentation against the OSImage, layers of
user data against what the node needs, as the manager judges them too; host selectors that
no host can match; and addresses of hosts that their network does not have, or that two have.
Objects of other kinds are passed over, and so are references to Secrets. What is not wrong
and not certain is a warning on standard error. No cluster is asked.

Exit status: 0 nothing is wrong, 1 something is, 2 the command line was not understood.`,
		Example: "  ingot validate -f manifests/",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON, err := output.IsJSON(cmd)
			if err != nil {
				return err
			}
			files, err := flags.Open(cmd)
			if err != nil {
				return err
			}
			report, err := Validate(files, opts)
			if err != nil {
				return err
			}
			if asJSON {
				if err := offline.WriteJSON(cmd.OutOrStdout(), report); err != nil {
					return err
				}
			} else if err := report.write(cmd); err != nil {
				return err
			}
			if n := len(report.Findings); n > 0 {
				return fmt.Errorf("%s in %s", countOf(n, "thing is wrong", "things are wrong"), countOf(report.Judged, "object", "objects"))
			}
			return nil
		},
	}
	offline.AddFileFlag(c, &flags)
	offline.AddOutputFlag(c, &output)
	c.Flags().BoolVar(&opts.AllowMissing, "allow-missing", false, "objects that are referred to may be elsewhere; what needs them is not judged")
	return c
}

func (r Report) write(cmd *cobra.Command) error {
	for _, f := range r.Findings {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), f); err != nil {
			return err
		}
	}
	for _, w := range r.Warnings {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s judged, %d of other kinds passed over\n", countOf(r.Judged, "object", "objects"), r.PassedOver)
	return err
}

func countOf(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
