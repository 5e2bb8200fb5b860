package join

import (
	"net/netip"
	"net/url"
	"strings"
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
