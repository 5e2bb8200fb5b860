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

// runProfiledManager runs the manager's own code: this program, when it is started by a link of the manager's name. It writes profiles beside the configuration file: manager-1.cpu until
// SIGUSR1, manager-2.cpu from then on, and manager.heap at the end.
func runProfiledManager(ctx context.Context, args []string) error {
	set := flag.CommandLine // it has controller-runtime's --kubeconfig
	file := set.String("config", "", "configuration file")
	embedBoot := set.Bool("embed-boot", false, "serve boots")
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
	end, err := startManagerProfiles(filepath.Dir(*file))
	if err != nil {
		return err
	}
	return errors.Join(operator.Run(ctx, s, config, operator.Options{Version: "bench", EmbedBoot: *embedBoot}), end())
}

// startManagerProfiles starts the first CPU profile. end writes the remaining profiles.
func startManagerProfiles(dir string) (end func() error, err error) {
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
	switchSignal, stop, stopped := make(chan os.Signal, 1), make(chan struct{}), make(chan error, 1)
	signal.Notify(switchSignal, syscall.SIGUSR1)
	go func() {
		var errs []error
		for {
			select {
			case <-switchSignal:
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
		runtime.GC() // the profile has only what is still in use
		return errors.Join(<-stopped, pprof.WriteHeapProfile(heap), heap.Close())
	}, nil
}
