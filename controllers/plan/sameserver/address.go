package sameserver

import (
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// bmc is a BMC address without what differs between two spellings of it.
type bmc struct {
	// endpoint is the host in lower case, with the port unless that is the default one of its protocol. It is empty when the address cannot be
	// read.
	endpoint string
	// systemPath is the path of the system at the BMC, in lower case. It is empty when the address names no system.
	systemPath string
}

// isSameSystem reports whether both addresses are known and of one BMC, and do not name different systems of it.
func (b bmc) isSameSystem(other bmc) bool {
	if b.endpoint == "" || b.endpoint != other.endpoint {
		return false
	}
	return b.systemPath == "" || other.systemPath == "" || b.systemPath == other.systemPath
}

// bmcOf parses spec.bmc.address. Scheme, user, password and query are left out: a BMC that is reached by Redfish and by IPMI is one BMC.
func bmcOf(address string) bmc {
	address = strings.TrimSpace(address)
	if !strings.Contains(address, "://") {
		address = "ipmi://" + address // as Metal3 reads an address without a scheme
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return bmc{}
	}
	endpoint := hostName(parsed.Hostname())
	if endpoint == "" {
		return bmc{}
	}
	if port := strings.TrimLeft(parsed.Port(), "0"); port != "" && port != defaultPort(strings.ToLower(parsed.Scheme)) {
		if strings.Contains(endpoint, ":") {
			endpoint = "[" + endpoint + "]"
		}
		endpoint += ":" + port
	}
	return bmc{endpoint: endpoint, systemPath: systemPath(parsed.Path)}
}

// hostName returns an IP address in its shortest form, an IPv6 address that stands for an IPv4 address as that one, and a DNS name in
// lower case without the final dot.
func hostName(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().String()
	}
	return name
}

// defaultPort returns the port that the protocol of a Metal3 scheme uses when the address has none.
func defaultPort(scheme string) string {
	_, transport, _ := strings.Cut(scheme, "+")
	switch {
	case scheme == "http" || transport == "http":
		return "80"
	case scheme == "ipmi" || scheme == "libvirt":
		return "623"
	}
	return "443"
}

// collectionPaths are Redfish paths that name no single system.
var collectionPaths = []string{"", "/", "/redfish", "/redfish/v1", "/redfish/v1/systems"}

// systemPath returns the path of the system without repeated and final slashes. It is in lower case, because no BMC has two systems whose
// paths differ in case alone.
func systemPath(given string) string {
	cleaned := strings.ToLower(path.Clean("/" + given))
	for _, collection := range collectionPaths {
		if cleaned == collection {
			return ""
		}
	}
	return cleaned
}
