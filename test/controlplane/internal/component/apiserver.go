package component

import (
	"context"
	"fmt"
	"net"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// StartAPIServer runs kube-apiserver with these flags on a listener that is open already, so that its port is known
// and stays taken.
func StartAPIServer(listener net.Listener, args []string) (*Component, error) {
	const name = "kube-apiserver"
	server := options.NewServerRunOptions()
	if err := parse(name, server.Flags(), args); err != nil {
		return nil, err
	}
	server.SecureServing.Listener = listener
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set the feature gates of %s: %w", name, err)
	}
	completed, err := server.Complete(context.Background())
	if err != nil {
		return nil, fmt.Errorf("complete the options of %s: %w", name, err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("validate the options of %s: %w", name, utilerrors.NewAggregate(errs))
	}
	return start(name, func(ctx context.Context) error { return app.Run(ctx, completed) }), nil
}
