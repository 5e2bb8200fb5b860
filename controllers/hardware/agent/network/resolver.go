package network

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// maxNameServers is how many name servers resolv.conf(5) has; further ones are not asked.
const maxNameServers = 3

// domainPattern is the form of a search domain. A DHCP server may send any bytes.
var domainPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// resolverContent returns the content of resolv.conf: the name servers that are configured, or else those that were offered.
func resolverContent(configured []netip.Addr, offered map[string][]netip.Addr, domain string) string {
	servers := slices.Clone(configured)
	if len(servers) == 0 {
		for _, who := range slices.Sorted(maps.Keys(offered)) {
			servers = append(servers, offered[who]...)
		}
	}
	var b strings.Builder
	seen := map[netip.Addr]bool{}
	for _, s := range servers {
		if !s.IsValid() || s.IsUnspecified() || seen[s] || len(seen) == maxNameServers {
			continue
		}
		seen[s] = true
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	if b.Len() > 0 && domainPattern.MatchString(domain) {
		fmt.Fprintf(&b, "search %s\n", domain)
	}
	return b.String()
}
