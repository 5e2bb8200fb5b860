package component

import (
	"context"
	"fmt"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// StartScheduler runs kube-scheduler with these flags.
func StartScheduler(args []string) (*Component, error) {
	const name = "kube-scheduler"
	scheduler := options.NewOptions()
	if err := parse(name, *scheduler.Flags, args); err != nil {
		return nil, err
	}
	if err := scheduler.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set the feature gates of %s: %w", name, err)
	}
	return start(name, func(ctx context.Context) error {
		config, runner, err := app.Setup(ctx, scheduler)
		if err != nil {
			return fmt.Errorf("set up: %w", err)
		}
		return app.Run(ctx, config, runner)
	}), nil
}
