package operator

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/pin"
	"github.com/ingot-dev/ingot/controllers/plan/bootnetwork"
)

// bootPort is the boot service's port where a NodeProvider names none.
const bootPort = "8090"

// bootSettingsOfHost returns a function that finds what the NodeProvider of a host's namespace says about its boots: the address of the boot
// service, and whether the server must be the known one. securePort is the port of its HTTPS; empty: it has none.
func bootSettingsOfHost(reader client.Reader, securePort string) func(context.Context, netboot.Session) (netboot.HostSettings, error) {
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
			settings.SecureURL = secureURL(provider.Spec.Redfish.Netboot, securePort)
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

// secureURL returns the URL of the boot service's HTTPS for the hosts of a NodeProvider; "" if port is empty, because there is no HTTPS.
func secureURL(boot v1alpha1.NetbootSpec, port string) string {
	if port == "" {
		return ""
	}
	if host, own, err := net.SplitHostPort(boot.SecureAddress); err == nil {
		return "https://" + net.JoinHostPort(host, own)
	}
	return "https://" + net.JoinHostPort(hostOf(cmp.Or(boot.SecureAddress, boot.Address)), port)
}

// hostOf returns the host of HOST or HOST:PORT, without brackets.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// bootNames returns a function that finds the hosts of all addresses of the boot service's HTTPS: those of the NodeProviders, and the one of base.
func bootNames(reader client.Reader, base string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var providers v1alpha1.NodeProviderList
		if err := reader.List(ctx, &providers); err != nil {
			return nil, fmt.Errorf("list NodeProviders: %w", err)
		}
		var names []string
		if parsed, err := url.Parse(base); err == nil {
			names = append(names, parsed.Hostname())
		}
		for _, provider := range providers.Items {
			if boot := provider.Spec.Redfish; boot != nil {
				names = append(names, hostOf(cmp.Or(boot.Netboot.SecureAddress, boot.Netboot.Address)))
			}
		}
		return names, nil
	}
}

// checkBoot returns a function that asks a NodeProvider's addresses of the boot service whether this installation's answers there. No proxy is
// asked: servers that boot have none.
func checkBoot(key *bootKey, tls bootTLS) func(context.Context, v1alpha1.NetbootSpec) error {
	return func(ctx context.Context, boot v1alpha1.NetbootSpec) error {
		expected, err := key.get(ctx)
		if err != nil {
			return hardware.Errorf(hardware.Unreachable, "read the boot key", boot.Address, "%w", err)
		}
		plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if err := netboot.Probe(ctx, plain, bootURL(boot.Address), expected); err != nil {
			return err
		}
		secure := secureURL(boot, tls.port)
		if secure == "" {
			return nil
		}
		pins, err := tls.pins(ctx)
		if err != nil {
			return hardware.Errorf(hardware.Unreachable, "read the boot service's certificate", secure, "%w", err)
		}
		return netboot.Probe(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: pin.ClientConfig(pins, time.Now)}}, secure, expected)
	}
}
