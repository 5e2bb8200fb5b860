package verify

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// options are the files of the cluster.
type options struct {
	flags                                   offline.Flags
	machine                                 string
	node, slices, deviceClasses, daemonSets string
}

// Command is `ingot verify`.
func Command() *cobra.Command {
	var opts options
	var output offline.Output
	c := &cobra.Command{
		Use:   "verify -f FILE... --node NODE.json",
		Short: "Compare what a cluster shows of a node with what its NodeType promises",
		Long: `Reads a NodeType with its OSImage and NodeProvider, and a node as kubectl writes it, and
judges the node with the manager's own verdict. No cluster is asked.

  kubectl get node NAME -o json > node.json
  kubectl get resourceslices -o json > slices.json          for GPUs that DRA gives away
  kubectl get deviceclasses -o json > classes.json
  kubectl get daemonsets -A -o json > daemonsets.json       for better hints
  kubectl get machine NAME -n NAMESPACE -o yaml > m.yaml    with -f, for the node's identity

What the files do not tell is not compared, and listed. A file may be - for standard input.

Exit status: 0 every check passes, 1 one does not, 2 the command line was not understood.`,
		Example: "  ingot verify -f manifests/ --nodetype h100 --node node.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asJSON, err := output.IsJSON(cmd)
			if err != nil {
				return err
			}
			report, err := run(cmd, opts)
			if err != nil {
				return err
			}
			if asJSON {
				err = offline.WriteJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.write(cmd.OutOrStdout())
			}
			if err != nil {
				return err
			}
			return report.failure()
		},
	}
	offline.AddFileFlag(c, &opts.flags)
	offline.AddNodeTypeFlag(c, &opts.flags)
	offline.AddOutputFlag(c, &output)
	f := c.Flags()
	f.StringVar(&opts.node, "node", "", "file with the Node")
	f.StringVar(&opts.slices, "slices", "", "file with the cluster's ResourceSlices")
	f.StringVar(&opts.deviceClasses, "deviceclasses", "", "file with the cluster's DeviceClasses")
	f.StringVar(&opts.daemonSets, "daemonsets", "", "file with the cluster's DaemonSets")
	f.StringVar(&opts.machine, "machine", "", "name of the Machine that the node is, which -f has as the management cluster shows it")
	return c
}

func run(cmd *cobra.Command, opts options) (Report, error) {
	if opts.node == "" {
		return Report{}, cli.Usagef(cmd, "expected --node, a file with the Node as kubectl get node NAME -o json writes it")
	}
	files, err := opts.flags.Open(cmd)
	if err != nil {
		return Report{}, err
	}
	inputs, err := files.FindNodeInputs(opts.flags.NodeType)
	if err != nil {
		return Report{}, err
	}
	if err := inputs.WriteWarning(cmd.ErrOrStderr()); err != nil {
		return Report{}, err
	}
	plan, err := inputs.Plan()
	if err != nil {
		return Report{}, fmt.Errorf("NodeType %s is impossible: %w", inputs.NodeType.Name, err)
	}
	if len(plan.Expectation.Slices) > 0 && opts.slices == "" {
		return Report{}, cli.Usagef(cmd, "expected --slices, because a DRA driver gives the GPUs of NodeType %s away: kubectl get resourceslices -o json", inputs.NodeType.Name)
	}
	observation, err := opts.read(cmd.InOrStdin())
	if err != nil {
		return Report{}, err
	}
	if opts.machine != "" {
		if observation.machine, err = files.FindMachine(opts.machine); err != nil {
			return Report{}, err
		}
	}
	return Judge(inputs, plan.Expectation, observation, time.Now()), nil
}
