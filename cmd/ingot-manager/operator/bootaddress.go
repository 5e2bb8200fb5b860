package operator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/plan/bootnetwork"
)

// bootPort is the boot service's port where a NodeProvider names none.
const bootPort = "8090"

// bootSettingsOfHost returns a function that finds what the NodeProvider of a host's namespace says about its boots: the address of the boot
// service, and whether the server must be the known one.
func bootSettingsOfHost(reader client.Reader) func(context.Context, netboot.Session) (netboot.HostSettings, error) {
	return func(ctx context.Context, session netboot.Session) (netboot.HostSettings, error) {
		var namespace corev1.Namespace
		if err := reader.Get(ctx, client.ObjectKey{Name: session.Namespace}, &namespace); err != nil {
			return netboot.HostSettings{}, fmt.Errorf("read the host's namespace: %w", err)
		}
		name := namespace.Annotations[v1alpha1.AnnotationNodeProvider]
		if name == "" {
			return netboot.HostSettings{}, nil
		}
		var provider v1alpha1.NodeProvider
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, &provider); err != nil {
			return netboot.HostSettings{}, fmt.Errorf("read the host's NodeProvider: %w", err)
		}
		settings := netboot.HostSettings{StrictIdentity: provider.Spec.StrictIdentity}
		if provider.Spec.Redfish != nil {
			settings.URL, settings.CABundle = bootURL(provider.Spec.Redfish.Netboot.Address), provider.Spec.Redfish.Netboot.CABundle
			return addNetwork(ctx, reader, session, provider.Spec.Redfish.Netboot.Network, settings)
		}
		return settings, nil
	}
}

// addNetwork adds how the host's server brings up its network. Without a network of the NodeProvider it is told its boot NIC alone.
func addNetwork(ctx context.Context, reader client.Reader, session netboot.Session, network *v1alpha1.NetbootNetworkSpec, settings netboot.HostSettings) (netboot.HostSettings, error) {
	if network == nil {
		return settings, nil
	}
	var host metal3.BareMetalHost
	if err := reader.Get(ctx, client.ObjectKey{Namespace: session.Namespace, Name: session.Name}, &host); err != nil {
		return settings, fmt.Errorf("read the host: %w", err)
	}
	var err error
	if settings.Network, err = bootnetwork.Of(network, host.Annotations); err != nil {
		return settings, hardware.Errorf(hardware.Invalid, "serve a boot document", session.Namespace+"/"+session.Name, "%w", err)
	}
	return settings, nil
}

// bootURL returns the URL of HOST or HOST:PORT. A bare IPv6 address gets brackets.
func bootURL(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return "http://" + address
	}
	return "http://" + net.JoinHostPort(strings.Trim(address, "[]"), bootPort)
}

// checkBoot returns a function that asks a NodeProvider's address of the boot service whether this installation's answers there. No proxy is
// asked: servers that boot have none.
func checkBoot(key *bootKey) func(context.Context, string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context, address string) error {
		expected, err := key.get(ctx)
		if err != nil {
			return hardware.Errorf(hardware.Unreachable, "read the boot key", address, "%w", err)
		}
		return netboot.Probe(ctx, client, bootURL(address), expected)
	}
}
