package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/ingot-dev/ingot/test/controlplane/internal/plane"
)

// exitGrace bounds an orderly end: whoever lost its parent must not stay because a component hangs.
const exitGrace = 45 * time.Second

// gcPercent lets the heap grow to three times what is in use.
const gcPercent = 200

type runOptions struct {
	plane          plane.Options
	exitWithParent bool
	verbose        bool
}

func parseRun(args []string) (runOptions, error) {
	var options runOptions
	flags := pflag.NewFlagSet("ingot-controlplane run", pflag.ContinueOnError)
	flags.StringVar(&options.plane.Dir, "dir", "", "directory of data and credentials (required)")
	flags.StringVar(&options.plane.Address, "address", "", "IP address of kube-apiserver; empty is 127.0.0.1")
	flags.IntVar(&options.plane.Port, "port", 0, "port of kube-apiserver; 0 takes a free one")
	flags.StringVar(&options.plane.AuditLog, "audit-log", "", "file that gets kube-apiserver's audit log")
	flags.BoolVar(&options.exitWithParent, "exit-with-parent", false, "stop when standard input ends: "+
		"give it a pipe whose other end only the parent holds")
	flags.BoolVarP(&options.verbose, "verbose", "v", false, "log to standard error instead of DIR/controlplane.log")
	flags.StringArrayVar(&options.plane.APIServerArgs, "apiserver-arg", nil, "further flag for kube-apiserver")
	flags.StringArrayVar(&options.plane.SchedulerArgs, "scheduler-arg", nil, "further flag for kube-scheduler")
	flags.StringArrayVar(&options.plane.ControllerManagerArgs, "controller-manager-arg", nil,
		"further flag for kube-controller-manager")
	if err := flags.Parse(args); err != nil {
		return runOptions{}, err
	}
	if flags.NArg() > 0 {
		return runOptions{}, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if options.plane.Dir == "" {
		return runOptions{}, errors.New("--dir is required")
	}
	return options, nil
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	options, err := parseRun(args)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if !options.verbose {
		if err := logTo(filepath.Join(options.plane.Dir, "controlplane.log")); err != nil {
			return err
		}
	}
	if os.Getenv("GOGC") == "" {
		// Several control planes share a developer's machine, which is short of processors before it is short of memory.
		debug.SetGCPercent(gcPercent)
	}
	// The components use deprecated APIs on purpose.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if options.exitWithParent {
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	context.AfterFunc(ctx, func() { time.AfterFunc(exitGrace, giveUp) })
	return plane.Run(ctx, options.plane, func(endpoint plane.Endpoint) {
		_, _ = fmt.Fprintln(stdout, "ready", endpoint.URL, endpoint.Kubeconfig)
	})
}

func giveUp() {
	_, _ = fmt.Fprintln(originalStderr(), "ingot-controlplane: not stopped within", exitGrace)
	os.Exit(1)
}
