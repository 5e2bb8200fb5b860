package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are the values of the flags.
type options struct {
	machines        int
	steady, timeout time.Duration
	dir             string
	profile         bool
	tenantQPS       int
	provider        string
}

// Values of -provider.
const providerRedfish, providerMetal3 = "redfish", "metal3"

func main() { os.Exit(run(os.Args)) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case filepath.Base(args[0]) == managerProgram:
		err = runProfiledManager(ctx, args[1:])
	case len(args) == 2 && args[1] == rackCommand:
		err = serveRack(ctx, os.Stdin, os.Stdout)
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
	set.IntVar(&o.machines, "machines", 1000, "servers and `Machines`, a third each as whole GPUs, as MIG and by DRA")
	set.DurationVar(&o.steady, "steady", 10*time.Minute, "how long to watch the fleet after the last Machine is Ready; 0: not at all")
	set.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long the Machines may take")
	set.StringVar(&o.dir, "dir", "", "`folder` for disks, logs and profiles, which is kept; empty: one that is removed, unless the run fails")
	set.BoolVar(&o.profile, "profile", false, "keep CPU profiles of manager and rack, and a heap profile of the manager; needs -dir")
	set.IntVar(&o.tenantQPS, "tenant-qps", 0, "the manager's limit of requests a `second` to one tenant; 0: its default")
	set.StringVar(&o.provider, "provider", providerRedfish, "`who` installs the servers: redfish, which is the manager, or metal3, a baremetal-operator in the process of the rack")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	switch {
	case set.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case o.machines < 3 || o.machines > 5000:
		return o, fmt.Errorf("-machines %d: expected 3 to 5000", o.machines)
	case o.steady < 0 || o.timeout <= 0 || o.tenantQPS < 0:
		return o, errors.New("-steady, -timeout and -tenant-qps: expected no negative number")
	case o.provider != providerRedfish && o.provider != providerMetal3:
		return o, fmt.Errorf("-provider %s: expected %s or %s", o.provider, providerRedfish, providerMetal3)
	case o.profile && o.dir == "":
		return o, errors.New("-profile: give -dir too, for the profiles would be removed")
	}
	return o, nil
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
	f := newFleet(o, dir, os.Stderr)
	defer func() {
		// Disks and images are large; the logs are needed to explain a failure.
		err = errors.Join(err, f.stop(), f.env.RemoveAllButLogs())
		switch {
		case err != nil:
			err = fmt.Errorf("%w; logs of all processes: %s", err, dir)
		case o.dir == "":
			err = os.RemoveAll(dir)
		}
	}()
	if err := f.run(ctx); err != nil {
		return err
	}
	return f.writeReport(os.Stdout)
}

// logProgress writes a line about the progress of the run.
func logProgress(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
