package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/operator"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
)

// managerProgram is the manager's file name. A link of that name to this program is the same manager, profiled.
const managerProgram = "ingot-manager"

// profiledManager runs the manager's own code. It writes its profiles beside its configuration: manager-1.cpu until it gets
// SIGUSR1, manager-2.cpu from there on, and manager.heap at the end.
func profiledManager(ctx context.Context, args []string) error {
	set := flag.CommandLine // it has controller-runtime's --kubeconfig
	file := set.String("config", "", "configuration file")
	if err := set.Parse(args); err != nil {
		return err
	}
	f, err := os.Open(*file)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := settings.Read(f)
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	end, err := profile(filepath.Dir(*file))
	if err != nil {
		return err
	}
	return errors.Join(operator.Run(ctx, s, config, "bench"), end())
}

// profile starts the first CPU profile; end writes what is missing.
func profile(dir string) (end func() error, err error) {
	n := 0
	var out *os.File
	next := func() error {
		pprof.StopCPUProfile()
		n++
		var err error
		if out != nil {
			err = out.Close()
		}
		if err != nil {
			return err
		}
		if out, err = os.Create(filepath.Join(dir, fmt.Sprintf("manager-%d.cpu", n))); err != nil {
			return err
		}
		return pprof.StartCPUProfile(out)
	}
	if err := next(); err != nil {
		return nil, err
	}
	turn, stop, stopped := make(chan os.Signal, 1), make(chan struct{}), make(chan error, 1)
	signal.Notify(turn, syscall.SIGUSR1)
	go func() {
		var errs []error
		for {
			select {
			case <-turn:
				errs = append(errs, next())
			case <-stop:
				pprof.StopCPUProfile()
				stopped <- errors.Join(append(errs, out.Close())...)
				return
			}
		}
	}()
	return func() error {
		close(stop)
		heap, err := os.Create(filepath.Join(dir, "manager.heap"))
		if err != nil {
			return err
		}
		runtime.GC() // what is held, not what has not been collected yet
		return errors.Join(<-stopped, pprof.WriteHeapProfile(heap), heap.Close())
	}, nil
}

// profileTo writes a CPU profile from now until end; without a file it does nothing.
func profileTo(file string) (end func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	out, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, errors.Join(fmt.Errorf("profile: %w", err), out.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return out.Close()
	}, nil
}
