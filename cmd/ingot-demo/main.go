// Command ingot-demo shows Ingot at work: three Kubernetes control planes (of Ingot and of two tenants), a rack of simulated servers
// and the real manager on this machine. It exits with 0 only when everything that it promises happened.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot-demo/scenario"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// version is set by the linker: see LDFLAGS in the Makefile.
var version = "unknown"

func main() {
	cli.SilenceLibraries()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Whoever asks for SIGPIPE is not ended by it: a reader that is gone, as in "| head", ends the demo in order.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, end := context.WithCancelCause(ctx)
	status := cli.Run(ctx, command(), os.Args[1:], output{os.Stdout, end}, os.Stderr)
	stop()
	os.Exit(status)
}

// output ends the demo when nobody reads what it writes. A terminal is known as one through it.
type output struct {
	*os.File
	end context.CancelCauseFunc
}

// Write writes to the file.
func (o output) Write(text []byte) (int, error) {
	n, err := o.File.Write(text)
	if err != nil {
		o.end(err)
	}
	return n, err
}

func command() *cobra.Command {
	o := scenario.Options{}
	samples, servers := "", 0
	c := &cobra.Command{
		Use:   "ingot-demo",
		Short: "Watch simulated servers go from powered off to admitted Kubernetes nodes",
		Long: "Starts real Kubernetes control planes, of Ingot and of tenants, a rack of simulated servers with Redfish BMCs, and ingot-manager on this machine,\n" +
			"runs the whole pipeline, and exits with 0 only when everything that it promises happened.",
		Version: version,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			if samples != "" {
				if info, err := os.Stat(samples); err != nil || !info.IsDir() {
					return cli.Usagef(cmd, "--samples %s: expected a folder like config/samples", samples)
				}
				o.Samples = os.DirFS(samples)
			}
			if cmd.Flags().Changed("servers") {
				o.Servers = &servers
			}
			if err := o.Validate(); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			return run(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Story, "story", scenario.DefaultStory, "what is shown: pipeline, from powered-off servers to rollouts; tenants, who share a cluster; or outage, of a switch during a rollout")
	f.IntVar(&servers, "servers", 0, "servers in the rack, half for MIG in the story tenants (default 2); in the story pipeline (default 8) two for MIG, two for DRA, the others for whole GPUs")
	f.Float64Var(&o.Speed, "speed", scenario.DefaultSpeed, "how many times faster than real servers")
	f.BoolVar(&o.Keep, "keep", false, "leave everything running at the end, and print the kubeconfigs, until Ctrl-C")
	f.BoolVar(&o.Plain, "plain", false, "tell the story line by line, also on a terminal")
	f.IntVar(&o.HideGPUs, "hide-gpus", 0, "take a GPU from so many servers of the first pool that should be healthy, and see the demo fail")
	f.StringVar(&o.Break, "break", "", "spoil one MIG server, and see the demo fail: mig-unit or mig-profile")
	f.StringVar(&o.Provider, "provider", scenario.DefaultProvider, "who installs the servers: redfish, which is Ingot itself; ironic, where Ironic is installed; or metal3, a baremetal-operator")
	f.StringVar(&samples, "samples", "", "folder to use in place of the built-in config/samples")
	f.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "time for each step of the story")
	return c
}

// run runs the demo, and says that everything is stopped when it was interrupted. An interrupt that ends --keep is no failure.
func run(ctx context.Context, o scenario.Options) error {
	err := scenario.Run(ctx, o)
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("interrupted (%w): everything that was started is stopped: %w", context.Cause(ctx), err)
	}
	return err
}
