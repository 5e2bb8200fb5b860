package machine

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/shell"
)

// nodesFolder has a directory for each memory node.
const nodesFolder = "/sys/devices/system/node"

// topologyFile returns a file of the kernel about processors and memory (proc(5)).
func (m *Machine) topologyFile(path string) (text string, ok bool) {
	switch {
	case path == "/proc/cpuinfo" && m.options.CPUs > 0:
		var out strings.Builder
		for i := range m.options.CPUs {
			fmt.Fprintf(&out, "processor\t: %d\nmodel name\t: %s\n\n", i, m.options.CPU)
		}
		return out.String(), true
	case path == "/proc/meminfo" && m.options.MemoryBytes > 0:
		return fmt.Sprintf("MemTotal:       %d kB\nMemFree:        %d kB\n", m.options.MemoryBytes>>10, m.options.MemoryBytes>>11), true
	}
	return "", false
}

// topologyNames returns the names in a directory about memory nodes.
func (m *Machine) topologyNames(path string) []string {
	path = strings.TrimSuffix(path, "/")
	if below, ok := strings.CutPrefix(nodesFolder, path+"/"); ok && path != "/sys" {
		first, _, _ := strings.Cut(below, "/")
		return []string{first}
	}
	out := []string{"online"}
	for i := range m.options.NUMANodes {
		name := fmt.Sprintf("node%d", i)
		if path == nodesFolder+"/"+name {
			return []string{"cpulist"}
		}
		out = append(out, name)
	}
	if path != nodesFolder {
		return nil
	}
	return out
}

// showAddresses is `ip -o address show to NETWORK`: the address of the network interface, if it is in the network.
func (m *Machine) showAddresses(c shell.Call) error {
	address, err := netip.ParseAddr(m.options.Address)
	if err != nil {
		return nil //nolint:nilerr // A machine without an address shows none.
	}
	for i, word := range c.Arguments {
		if word != "to" || i+1 == len(c.Arguments) {
			continue
		}
		network, err := netip.ParsePrefix(c.Arguments[i+1])
		if err != nil {
			return err
		}
		if !network.Contains(address) {
			return nil
		}
	}
	_, err = fmt.Fprintf(c.Stdout, "2: eth0    inet %s/%d scope global eth0\n", address, address.BitLen())
	return err
}
