package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ingot-dev/ingot/test/fleet"
)

// options are the values of the flags.
type options struct {
	machines        int
	steady, timeout time.Duration
	dir             string
	profile         bool
	tenantQPS       int
	rounds          int
	tenants, claims int
	provider        string
}

// Values of -provider.
const providerRedfish, providerMetal3, providerIronic = fleet.Redfish, fleet.Metal3, "ironic"

// defaultMachines are the numbers of Machines where -machines is 0.
var defaultMachines = map[string]int{providerRedfish: 1000, providerMetal3: 1000, providerIronic: 200}

func main() { os.Exit(run(os.Args)) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case filepath.Base(args[0]) == fleet.ManagerProgram:
		err = runProfiledManager(ctx, args[1:])
	case len(args) == 2 && args[1] == fleet.RackCommand:
		err = fleet.ServeRack(ctx, os.Stdin, os.Stdout)
	default:
		err = measure(ctx, args[1:])
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "ingot-bench:", err)
		return 1
	}
	return 0
}

func parseFlags(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("ingot-bench", flag.ContinueOnError)
	set.IntVar(&o.machines, "machines", 0, "servers and `Machines`, a third each as whole GPUs, as MIG and by DRA; 0: 1000, and with -provider ironic 200, all without GPUs")
	set.DurationVar(&o.steady, "steady", 10*time.Minute, "how long to watch the fleet after the last Machine is Ready; 0: not at all, as with -provider ironic")
	set.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long the Machines may take")
	set.StringVar(&o.dir, "dir", "", "`folder` for disks, logs and profiles, which is kept; empty: one that is removed, unless the run fails")
	set.BoolVar(&o.profile, "profile", false, "keep CPU profiles of manager and rack, and a heap profile of the manager; needs -dir")
	set.IntVar(&o.tenantQPS, "tenant-qps", 0, "the manager's limit of requests a `second` to one tenant; 0: its default")
	set.IntVar(&o.rounds, "rounds", 3, "how many times each side deploys all nodes with -provider ironic")
	set.IntVar(&o.tenants, "tenants", 0, "measure a cluster that so many `tenants` share, and no Machines; 0: Machines")
	set.IntVar(&o.claims, "claims", 1000, "how many claims the tenants of -tenants have together")
	set.StringVar(&o.provider, "provider", providerRedfish, "`who` installs the servers: redfish, which is the manager, metal3, a baremetal-operator in the process of the rack, or ironic, an Ironic that is compared with a bare loop")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.machines = cmp.Or(o.machines, defaultMachines[o.provider])
	return o, checkOptions(o, set)
}

// checkOptions returns an error for flags that make no sense.
func checkOptions(o options, set *flag.FlagSet) error {
	switch {
	case set.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	case defaultMachines[o.provider] == 0:
		return fmt.Errorf("-provider %s: expected %s, %s or %s", o.provider, providerRedfish, providerMetal3, providerIronic)
	case o.machines < 3 || o.machines > 5000:
		return fmt.Errorf("-machines %d: expected 3 to 5000", o.machines)
	case o.steady < 0 || o.timeout <= 0 || o.tenantQPS < 0:
		return errors.New("-steady, -timeout and -tenant-qps: expected no negative number")
	case o.rounds < 1:
		return fmt.Errorf("-rounds %d: expected 1 or more", o.rounds)
	case o.profile && o.dir == "":
		return errors.New("-profile: give -dir too, for the profiles would be removed")
	}
	return checkSharing(o)
}

func checkSharing(o options) error {
	if o.tenants < 0 || o.tenants > 1000 || o.claims < 1 || o.claims > 10000 {
		return fmt.Errorf("-tenants %d -claims %d: expected up to 1000 tenants and 1 to 10000 claims", o.tenants, o.claims)
	}
	return nil
}

// measure runs the benchmark and writes its report.
func measure(ctx context.Context, args []string) (err error) {
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	dir := o.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "ingot-bench-"); err != nil {
			return err
		}
	}
	f := newFleetRun(o, dir, os.Stderr)
	run, writeReport, stop := f.run, f.writeReport, f.Stop
	switch {
	case o.tenants > 0:
		s := &sharing{fleetRun: f, tenants: o.tenants, claims: o.claims}
		run, writeReport, stop = s.run, s.writeReport, s.stop
	case o.provider == providerIronic:
		c := &comparison{fleetRun: f}
		run, writeReport, stop = c.run, c.writeReport, c.stop
	}
	defer func() {
		// Disks and images are large; the logs are needed to explain a failure.
		err = errors.Join(err, stop(), f.Env.RemoveAllButLogs())
		switch {
		case err != nil:
			err = fmt.Errorf("%w; logs of all processes: %s", err, dir)
		case o.dir == "":
			err = os.RemoveAll(dir)
		}
	}()
	if err := run(ctx); err != nil {
		return err
	}
	return writeReport(os.Stdout)
}
