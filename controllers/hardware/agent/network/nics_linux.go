package network

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// port is an interface of a card, as the lookup by MAC address sees it.
type port struct {
	link netlink.Link
	// current is the address that it uses, and permanent the one that it was made with; empty: the driver does not say.
	current, permanent string
	// card is the PCI slot of its card, 0000:41:00; empty: it is on none.
	card string
	// isVirtual is true for a virtual function of a card (SR-IOV).
	isVirtual bool
	// isMember is true for a member of a bond, which has the address of the bond.
	isMember bool
}

// listPorts returns the interfaces that may be ports of a card, in the order in which the kernel found them.
func listPorts() ([]port, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	var out []port
	for _, link := range links {
		a := link.Attrs()
		// The kernel has no kind for a card's interface. veth is a port of a container or a network namespace.
		isCard := link.Type() == "device" || link.Type() == "veth"
		if a.Flags&net.FlagLoopback != 0 || len(a.HardwareAddr) != 6 || !isCard {
			continue
		}
		p := port{link: link, current: a.HardwareAddr.String(), isMember: a.MasterIndex != 0}
		if len(a.PermHWAddr) == 6 {
			p.permanent = a.PermHWAddr.String()
		}
		device := "/sys/class/net/" + a.Name + "/device"
		if target, err := filepath.EvalSymlinks(device); err == nil {
			p.card, _, _ = strings.Cut(filepath.Base(target), ".")
		}
		_, err := os.Lstat(device + "/physfn")
		p.isVirtual = err == nil
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b port) int { return cmp.Compare(a.link.Attrs().Index, b.link.Attrs().Index) })
	return out, nil
}

// findPort returns the port with the MAC address. The address that a card was made with decides, because several interfaces may use one: a bond
// and its members, an interface and its VLANs, and virtual functions of some cards. Firmware of some servers boots with an address that it
// assigns itself: it is the one that the interface uses.
func findPort(ports []port, mac string) (port, bool) {
	for _, fits := range []func(port) bool{
		func(p port) bool { return p.permanent == mac && !p.isVirtual },
		func(p port) bool { return p.current == mac && !p.isVirtual && !p.isMember },
		func(p port) bool { return p.permanent == mac || p.current == mac && !p.isMember },
	} {
		if i := slices.IndexFunc(ports, fits); i >= 0 {
			return ports[i], true
		}
	}
	return port{}, false
}

// portsOfCard returns the ports of the card that the port belongs to, the port itself first.
func portsOfCard(ports []port, boot port) []port {
	out := []port{boot}
	for _, p := range ports {
		if boot.card != "" && p.card == boot.card && !p.isVirtual && p.link.Attrs().Index != boot.link.Attrs().Index {
			out = append(out, p)
		}
	}
	return out
}

// ListNICs returns the interfaces that the server has, also those that are made of others, without the loopback interface.
func ListNICs() []NIC {
	links, err := netlink.LinkList()
	if err != nil {
		return nil
	}
	var out []NIC
	for _, link := range links {
		a := link.Attrs()
		if a.Flags&net.FlagLoopback != 0 || len(a.HardwareAddr) == 0 {
			continue
		}
		n := NIC{Name: a.Name, MAC: a.HardwareAddr.String(), HasLink: a.RawFlags&rawFlagLowerUp != 0, Addresses: addressesOf(link)}
		if len(a.PermHWAddr) > 0 {
			n.PermanentMAC = a.PermHWAddr.String()
		}
		if driver, err := os.Readlink("/sys/class/net/" + a.Name + "/device/driver"); err == nil {
			n.Driver = filepath.Base(driver)
		}
		out = append(out, n)
	}
	return out
}

// rawFlagLowerUp is IFF_LOWER_UP of if.h: the port has a link.
const rawFlagLowerUp = 1 << 16

// addressesOf returns the addresses of the interface that reach beyond the link, and can be used.
func addressesOf(link netlink.Link) []netip.Prefix {
	addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return nil
	}
	var out []netip.Prefix
	for _, a := range addrs {
		address, ok := netip.AddrFromSlice(a.IP)
		address = address.Unmap()
		if ok && a.Flags&flagTentative == 0 && address.IsGlobalUnicast() {
			bits, _ := a.Mask.Size()
			out = append(out, netip.PrefixFrom(address, bits))
		}
	}
	return out
}

// flagTentative is IFA_F_TENTATIVE of if_addr.h: the address is not known to be unique yet.
const flagTentative = 0x40

// hasLink reports whether the interface has a link now.
func hasLink(link netlink.Link) bool {
	now, err := netlink.LinkByIndex(link.Attrs().Index)
	return err == nil && now.Attrs().RawFlags&rawFlagLowerUp != 0
}

// startIdlePorts starts the ports that are not in use, so that what is said of them includes whether they have a link. They ignore routers. Without
// it: the cable is in another port, on a network of tenants, and the server takes an address and a default route of that network.
func startIdlePorts() {
	ports, err := listPorts()
	if err != nil {
		return
	}
	for _, p := range ports {
		a := p.link.Attrs()
		if a.Flags&net.FlagUp != 0 || p.isMember || ignoreRouters(a.Name) != nil {
			continue
		}
		// A port that does not start is shown without a link.
		_ = netlink.LinkSetUp(p.link)
	}
}

// ignoreRouters has the interface take no address and no route from router advertisements.
func ignoreRouters(name string) error {
	return os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/accept_ra", []byte("0"), 0o644)
}
