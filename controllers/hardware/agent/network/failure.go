package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// Reason is what the network of a server lacks.
type Reason string

// Reasons.
const (
	// NICMissing means that no interface has the MAC address that the server boots from.
	NICMissing Reason = "BootNICMissing"
	// LinkMissing means that the boot NIC has no link.
	LinkMissing Reason = "BootNICNoLink"
	// AddressMissing means that neither a DHCP server nor a router has given an address.
	AddressMissing Reason = "NoAddress"
	// RouteMissing means that there is an address, and no route from it to the boot service.
	RouteMissing Reason = "NoRouteToBootService"
	// SetupFailed means that the kernel refused a bond, a VLAN or an address.
	SetupFailed Reason = "NetworkSetupFailed"
)

// Failure is what the network lacks, and what was seen instead. It implements error.
type Failure struct {
	Reason Reason
	// Message says what was expected and what was seen.
	Message string
	// Look says what a person should look at, after the word "look".
	Look string
	// NICs are the interfaces that the server has.
	NICs []NIC
}

// Error returns reason and message.
func (f *Failure) Error() string { return string(f.Reason) + ": " + f.Message + ": look " + f.Look }

// NIC is an interface as it is seen.
type NIC struct {
	// Name is the kernel's name, and Driver that of its driver; empty: not known.
	Name, Driver string
	// MAC is the address that it uses, and PermanentMAC the one that it was made with; empty: not known.
	MAC, PermanentMAC string
	// HasLink reports whether its port has a link.
	HasLink bool
	// Addresses are the addresses that it has, without those of the link.
	Addresses []netip.Prefix
}

// String returns one line.
func (n NIC) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", n.Name, n.MAC)
	if n.PermanentMAC != "" && n.PermanentMAC != n.MAC {
		fmt.Fprintf(&b, " (made with %s)", n.PermanentMAC)
	}
	if n.Driver != "" {
		b.WriteString(" " + n.Driver)
	}
	if n.HasLink {
		b.WriteString(" link")
	} else {
		b.WriteString(" no link")
	}
	for _, a := range n.Addresses {
		b.WriteString(" " + a.String())
	}
	return b.String()
}

func describe(nics []NIC) string {
	if len(nics) == 0 {
		return "no interface"
	}
	texts := make([]string, 0, len(nics))
	for _, n := range nics {
		texts = append(texts, n.String())
	}
	return strings.Join(texts, "; ")
}
