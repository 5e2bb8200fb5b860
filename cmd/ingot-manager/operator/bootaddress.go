package operator

import (
	"context"
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// bootPort is the boot service's port where a NodeProvider names none.
const bootPort = "8090"

// bootURLOfHost returns a function that finds the URL at which a host reaches the boot service: the address in the NodeProvider of the
// host's namespace.
func bootURLOfHost(reader client.Reader) func(context.Context, netboot.Session) (string, error) {
	return func(ctx context.Context, session netboot.Session) (string, error) {
		var namespace corev1.Namespace
		if err := reader.Get(ctx, client.ObjectKey{Name: session.Namespace}, &namespace); err != nil {
			return "", fmt.Errorf("read the host's namespace: %w", err)
		}
		name := namespace.Annotations[v1alpha1.AnnotationNodeProvider]
		if name == "" {
			return "", nil
		}
		var provider v1alpha1.NodeProvider
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, &provider); err != nil {
			return "", fmt.Errorf("read the host's NodeProvider: %w", err)
		}
		if provider.Spec.Redfish == nil {
			return "", nil
		}
		return bootURL(provider.Spec.Redfish.Netboot.Address), nil
	}
}

// bootURL returns the URL of HOST or HOST:PORT. A bare IPv6 address gets brackets.
func bootURL(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return "http://" + address
	}
	return "http://" + net.JoinHostPort(strings.Trim(address, "[]"), bootPort)
}
