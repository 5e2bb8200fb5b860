package component

import (
	"context"
	"fmt"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// StartControllerManager runs kube-controller-manager with these flags.
func StartControllerManager(args []string) (*Component, error) {
	const name = "kube-controller-manager"
	manager, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("make the options of %s: %w", name, err)
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	sets := manager.Flags(known, disabled, aliases)
	if err := parse(name, sets, args); err != nil {
		return nil, err
	}
	manager.ParsedFlags = &sets
	if err := manager.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set the feature gates of %s: %w", name, err)
	}
	return start(name, func(ctx context.Context) error {
		config, err := manager.Config(ctx, known, disabled, aliases)
		if err != nil {
			return fmt.Errorf("configure: %w", err)
		}
		return app.Run(ctx, config.Complete())
	}), nil
}
