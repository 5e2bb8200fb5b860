// Program guest is what runs in a virtual server beside Kubernetes' own programs. One image has it under two names, so that no registry is needed:
//
//	guest                            waits, as the container that holds a pod together does
//	guest plugin RESOURCE VENDOR:ID  is a device plugin for the devices on the PCI bus with these ids
//	guest compute                    has the device of its pod compute, and says what came out
//	guest probe                      reports whether its pod has a device, as the command of a NodeType's probe
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		<-ctx.Done()
		return nil
	case len(args) == 3 && args[0] == "plugin":
		return advertise(ctx, args[1], args[2])
	case len(args) == 1 && args[0] == "compute":
		return compute()
	case len(args) == 1 && args[0] == "probe":
		return probe()
	}
	return fmt.Errorf("unknown arguments %q", args)
}
