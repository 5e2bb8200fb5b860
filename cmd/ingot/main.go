// Ingot is the command line of Ingot. It shows the state of Machines, hosts and rollouts, checks and renders manifests, and makes images.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ingot-dev/ingot/cmd/ingot/claims"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/convert"
	"github.com/ingot-dev/ingot/cmd/ingot/discover"
	"github.com/ingot-dev/ingot/cmd/ingot/drain"
	"github.com/ingot-dev/ingot/cmd/ingot/explain"
	"github.com/ingot-dev/ingot/cmd/ingot/fleet"
	"github.com/ingot-dev/ingot/cmd/ingot/hostimport"
	"github.com/ingot-dev/ingot/cmd/ingot/image"
	"github.com/ingot-dev/ingot/cmd/ingot/mig"
	"github.com/ingot-dev/ingot/cmd/ingot/render"
	"github.com/ingot-dev/ingot/cmd/ingot/rollout"
	"github.com/ingot-dev/ingot/cmd/ingot/simulate"
	"github.com/ingot-dev/ingot/cmd/ingot/tenant"
	"github.com/ingot-dev/ingot/cmd/ingot/validate"
	"github.com/ingot-dev/ingot/cmd/ingot/verify"
)

// version is set by the linker: see LDFLAGS in the Makefile. It is empty in a program that `go install` has built.
var version string

func main() {
	cli.SilenceLibraries()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := cli.Run(ctx, newRootCommand(), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func newRootCommand() *cobra.Command {
	c := cli.NewGroup("ingot", "From racked GPU servers to admitted Kubernetes nodes",
		fleet.MachinesCommand(),
		fleet.WhyCommand(),
		fleet.HostsCommand(),
		fleet.EntitlementsCommand(),
		claims.Command(),
		fleet.UsersCommand(),
		drain.Command(),
		rollout.Command(simulate.Command()),
		explain.Command(),
		validate.Command(),
		render.Command(),
		verify.Command(),
		mig.Command(),
		demoCommand(),
		cli.NewGroup("host", "Bring servers in", discover.Command(), hostimport.Command()),
		image.Command(),
		tenant.Command(),
		convert.Command(),
		versionCommand(),
	)
	c.Version = versionText()
	c.SetVersionTemplate(versionLine())
	// kubectl runs the program kubectl-ingot as `kubectl ingot`.
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl ingot"}
	}
	return c
}

// demoCommand tells those who look for the demo where it is: it is a program of its own because it links the simulated servers.
func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Say how to run the demo", Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("the demo is the program ingot-demo: run `make demo`")
		},
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine is what `ingot version` and `ingot --version` print.
func versionLine() string {
	return fmt.Sprintf("ingot %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionText returns the version that the linker has set, or else the module's version, with the revision where the build has
// recorded it.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return info.Main.Version + " " + s.Value[:12]
		}
	}
	return info.Main.Version
}
