package join

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// IsLoopback reports whether the endpoint, https://HOST:PORT, is a node's own address when a node asks for it.
func IsLoopback(endpoint string) bool {
	name, ip := host(endpoint)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || ip.IsLoopback() || ip.IsUnspecified() // RFC 6761, section 6.3
}

// IsLinkLocal reports whether the endpoint is an address that means another machine on every network, such as a cloud's metadata service
// (RFC 3927, section 7; RFC 4291, section 2.5.6).
func IsLinkLocal(endpoint string) bool {
	_, ip := host(endpoint)
	return ip.IsLinkLocalUnicast()
}

// Problem returns why nodes cannot join as the TenantCluster says; empty: they can. endpoint is what nodes are given, and ca what the kubeconfig pins.
// The API server refuses a link-local endpoint in the TenantCluster; the kubeconfig's server is known only here.
func Problem(spec v1alpha1.JoinSpec, endpoint string, ca []byte) string {
	method := spec.Method()
	u, err := url.Parse(endpoint)
	switch {
	case IsLinkLocal(endpoint):
		return "spec.join." + string(method) + ".endpoint: nodes are given " + endpoint +
			" (without the field the kubeconfig's server), which is link-local and leads to another machine from every network: name what nodes reach"
	case !method.IsKubeadm():
		return ""
	case err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "":
		return "spec.join." + string(method) + ".endpoint: kubeadm joins at https://HOST:PORT without a path, and it is " + endpoint + ": name what nodes reach"
	case len(ca) == 0:
		return "spec.join." + string(method) + ": kubeadm verifies the cluster by its certificate authority, and the kubeconfig has none: add certificate-authority-data"
	}
	return ""
}

// host returns the host of a URL: its name, and its address if it is one.
func host(endpoint string) (string, netip.Addr) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", netip.Addr{}
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip, err := netip.ParseAddr(name)
	if err != nil {
		return name, netip.Addr{}
	}
	return name, ip.Unmap()
}
