// Package component runs the programs of a Kubernetes control plane as goroutines of this process.
//
// The programs' own commands cannot be used: each installs a signal handler, and the second handler of a process
// panics. The functions here do what the commands do between parsing the flags and running.
package component

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// Component is a program that runs in this process.
type Component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// start runs the program until it returns; Stop cancels its context.
func start(name string, run func(context.Context) error) *Component {
	ctx, cancel := context.WithCancel(context.Background())
	component := &Component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(component.done)
		err := run(ctx)
		switch {
		case ctx.Err() != nil: // kube-scheduler calls a requested end an error, too
		case err != nil:
			component.err = fmt.Errorf("%s failed: %w", name, err)
		default:
			component.err = fmt.Errorf("%s ended by itself", name)
		}
	}()
	return component
}

// Done is closed when the program has returned.
func (c *Component) Done() <-chan struct{} { return c.done }

// Err says why the program has returned unasked. It may be called once Done is closed.
func (c *Component) Err() error { return c.err }

// Stop asks the program to end and waits for it.
func (c *Component) Stop(timeout time.Duration) error {
	c.cancel()
	select {
	case <-c.done:
		return nil
	case <-time.After(timeout):
		return fmt.Errorf("%s has not stopped within %s", c.name, timeout)
	}
}

// parse sets the options behind the flag sets as the program's command line would.
func parse(name string, sets cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("parse the flags of %s: %w", name, err)
	}
	return nil
}
