package simulate

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// maxMachines limits the time that a simulation takes.
const maxMachines = 5_000

type options struct {
	files    []string
	nodeType string
	machines int
	failRate float64
	// broken and withoutHost are how many of the Machines are broken, and have no host, before the rollout begins.
	broken, withoutHost int
	seed                uint64
	json                bool
}

// Command is `ingot rollout simulate`.
func Command() *cobra.Command {
	var opts options
	var rate, output string
	c := &cobra.Command{
		Use:   "simulate -f FILE... --machines N",
		Short: "Tell how a change of your NodeType would reach the fleet",
		Long: `Reads a NodeType and its NodePools from files and plays a rollout of it with simulated
Machines in virtual time: each takes 1 to 10 minutes to drain and 12 to 20 to install, and
fails for good with the probability of --fail-rate. The planner is the manager's own; no
cluster is asked. The Machines are spread over the NodePools as their replicas are; without
NodePools none limits them. With --broken and --without-host some of them are broken before
the rollout begins, and are again when they are moved, or wait for a host: the end says what
that costs. The same files, flags and seed give the same story.`,
		Example: "  ingot rollout simulate -f nodetype.yaml -f nodepool.yaml --machines 40 --fail-rate 5% --seed 7",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := parseFlags(cmd, &opts, rate, output); err != nil {
				return err
			}
			return run(opts, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&opts.files, "filename", "f", nil, "file with the NodeType and its NodePools; may be repeated")
	f.StringVar(&opts.nodeType, "nodetype", "", "name of the NodeType, where the files have several")
	f.IntVar(&opts.machines, "machines", 0, "how many Machines (default: the replicas of the NodePools)")
	f.StringVar(&rate, "fail-rate", "0", "probability that a roll fails, such as 0.05 or 5%")
	f.IntVar(&opts.broken, "broken", 0, "how many of the Machines are broken before the rollout begins")
	f.IntVar(&opts.withoutHost, "without-host", 0, "how many of the Machines have no host")
	f.Uint64Var(&opts.seed, "seed", 1, "which of the possible stories")
	f.StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

// parseFlags parses the flags that are text.
func parseFlags(cmd *cobra.Command, opts *options, rate, output string) error {
	if len(opts.files) == 0 {
		return cli.Usagef(cmd, "expected -f, a file with a NodeType")
	}
	if cmd.Flags().Changed("machines") && (opts.machines < 1 || opts.machines > maxMachines) {
		return cli.Usagef(cmd, "--machines %d: expected a number from 1 to %d", opts.machines, maxMachines)
	}
	if opts.broken < 0 || opts.withoutHost < 0 {
		return cli.Usagef(cmd, "--broken %d, --without-host %d: expected numbers of at least 0", opts.broken, opts.withoutHost)
	}
	var known bool
	if opts.failRate, known = parseRate(rate); !known {
		return cli.Usagef(cmd, "--fail-rate %s: expected a probability such as 0.05 or 5%%", rate)
	}
	if output != "text" && output != "json" {
		return cli.Usagef(cmd, "-o %s: expected text or json", output)
	}
	opts.json = output == "json"
	return nil
}

func parseRate(text string) (rate float64, known bool) {
	number, percent := strings.CutSuffix(text, "%")
	rate, err := strconv.ParseFloat(number, 64)
	if percent {
		rate /= 100
	}
	return rate, err == nil && rate >= 0 && rate <= 1
}

func run(opts options, stdin io.Reader, out io.Writer) error {
	objects, err := read(opts.files, stdin)
	if err != nil {
		return err
	}
	f, err := objects.newFleet(opts)
	if err != nil {
		return err
	}
	if n := opts.broken + opts.withoutHost; n > f.size() {
		return fmt.Errorf("--broken and --without-host are %d Machines, of %d that are simulated", n, f.size())
	}
	return writeReport(f, opts, out)
}
