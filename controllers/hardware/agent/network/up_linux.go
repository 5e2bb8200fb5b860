package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// Clock returns the time and sleeps.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Config configures Up.
type Config struct {
	Settings Settings
	Clock    Clock
	Log      *slog.Logger
	// Target is the address of the boot service, which decides the family of the address that the server needs; invalid: any does.
	Target netip.Addr
	// WriteResolver writes the name servers where the program's resolver reads them.
	WriteResolver func(content string) error
}

const (
	// linkTimeout is how long an interface may take to appear and to get a link: drivers of cards with many ports take a minute, and a switch
	// that learns of the link by spanning tree keeps it blocked for another half.
	linkTimeout = 3 * time.Minute
	// addressTimeout is how long the network may take to give an address.
	addressTimeout = 5 * time.Minute
	poll           = 250 * time.Millisecond
)

// Up brings up the network and returns when the server has an address. Until ctx ends, leases are renewed. The error says what is missing and
// what was seen instead.
func Up(ctx context.Context, config Config) error {
	if loopback, err := netlink.LinkByName("lo"); err == nil {
		if err := netlink.LinkSetUp(loopback); err != nil {
			config.Log.Warn("the loopback interface is not up", "error", err)
		}
	}
	u := &up{Config: config}
	links, err := u.findLinks(ctx)
	if err != nil {
		return err
	}
	if config.Settings.Bond != nil {
		if links, err = u.addBond(links); err != nil {
			return err
		}
	}
	if err := u.waitForCarrier(ctx, links); err != nil {
		return err
	}
	if config.Settings.VLAN != 0 {
		if links, err = u.addVLANs(links); err != nil {
			return err
		}
	}
	if len(config.Settings.Addresses) > 0 {
		return u.setAddresses(links[0])
	}
	return u.askForAddress(ctx, links)
}

// up is one run of Up.
type up struct{ Config }

// isDoneWithin calls done until it returns true or the time is over, and returns false in this case.
func (u *up) isDoneWithin(ctx context.Context, limit time.Duration, done func() bool) bool {
	end := u.Clock.Now().Add(limit)
	for !done() {
		if u.Clock.Now().After(end) || u.Clock.Sleep(ctx, poll) != nil {
			return false
		}
	}
	return true
}

// findLinks waits until the interfaces of the settings are there.
func (u *up) findLinks(ctx context.Context) ([]netlink.Link, error) {
	var wanted []string
	switch {
	case u.Settings.Bond != nil:
		wanted = u.Settings.Bond.MACs
	case u.Settings.MAC != "":
		wanted = []string{u.Settings.MAC}
	}
	var found []netlink.Link
	var missing, seen []string
	u.isDoneWithin(ctx, linkTimeout, func() bool {
		found, missing, seen = matchLinks(wanted)
		return len(found) > 0 && len(missing) == 0
	})
	switch {
	case len(missing) > 0:
		return nil, fmt.Errorf("no interface has the MAC address %s; seen: %s: is it the boot MAC of this server, and does the ramdisk have the card's module?",
			strings.Join(missing, ", "), orNone(seen))
	case len(found) == 0:
		return nil, errors.New("the server has no network interface: does the ramdisk have the module of its card?")
	}
	return found, nil
}

// matchLinks returns the interfaces with hardware whose MAC address is wanted, or all when none is.
func matchLinks(wanted []string) (found []netlink.Link, missing, seen []string) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, wanted, []string{err.Error()}
	}
	byMAC := map[string]netlink.Link{}
	for _, link := range links {
		a := link.Attrs()
		if a.Flags&net.FlagLoopback != 0 || len(a.HardwareAddr) != 6 || link.Type() == "vlan" || link.Type() == "bond" {
			continue
		}
		mac := a.HardwareAddr.String()
		seen = append(seen, a.Name+" "+mac)
		byMAC[mac] = link
		if len(wanted) == 0 {
			found = append(found, link)
		}
	}
	for _, mac := range wanted {
		if link := byMAC[mac]; link != nil {
			found = append(found, link)
		} else {
			missing = append(missing, mac)
		}
	}
	return found, missing, seen
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// addBond makes the bond of the interfaces.
func (u *up) addBond(links []netlink.Link) ([]netlink.Link, error) {
	bond := netlink.NewLinkBond(netlink.LinkAttrs{Name: "bond0", HardwareAddr: links[0].Attrs().HardwareAddr})
	bond.Mode, bond.Miimon = netlink.StringToBondMode(u.Settings.Bond.Mode), 100
	if err := netlink.LinkAdd(bond); err != nil {
		return nil, fmt.Errorf("making the bond: %w", err)
	}
	for _, link := range links {
		if err := errors.Join(netlink.LinkSetDown(link), netlink.LinkSetMaster(link, bond)); err != nil {
			return nil, fmt.Errorf("adding %s to the bond: %w", link.Attrs().Name, err)
		}
	}
	return []netlink.Link{bond}, nil
}

// addVLANs makes the VLAN on each interface.
func (u *up) addVLANs(links []netlink.Link) ([]netlink.Link, error) {
	var out []netlink.Link
	for _, link := range links {
		vlan := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("%s.%d", link.Attrs().Name, u.Settings.VLAN), ParentIndex: link.Attrs().Index}, VlanId: u.Settings.VLAN}
		if err := netlink.LinkAdd(vlan); err != nil {
			return nil, fmt.Errorf("making VLAN %d on %s: %w", u.Settings.VLAN, link.Attrs().Name, err)
		}
		if err := netlink.LinkSetUp(vlan); err != nil {
			return nil, fmt.Errorf("starting %s: %w", vlan.Name, err)
		}
		out = append(out, vlan)
	}
	return out, nil
}

// waitForCarrier starts the interfaces and waits until one has a link.
func (u *up) waitForCarrier(ctx context.Context, links []netlink.Link) error {
	var names []string
	for _, link := range links {
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("starting %s: %w", link.Attrs().Name, err)
		}
		names = append(names, link.Attrs().Name+" "+link.Attrs().HardwareAddr.String())
	}
	hasCarrier := func() bool {
		return slices.ContainsFunc(links, func(link netlink.Link) bool {
			now, err := netlink.LinkByIndex(link.Attrs().Index)
			return err == nil && now.Attrs().RawFlags&rawFlagLowerUp != 0
		})
	}
	if !u.isDoneWithin(ctx, linkTimeout, hasCarrier) {
		return fmt.Errorf("no link at %s after %s: look at the cable, the transceiver and the switch port", strings.Join(names, ", "), linkTimeout)
	}
	return nil
}

// rawFlagLowerUp is IFF_LOWER_UP of if.h: the port has a link.
const rawFlagLowerUp = 1 << 16

// setAddresses sets the static addresses.
func (u *up) setAddresses(link netlink.Link) error {
	for _, address := range u.Settings.Addresses {
		if err := addAddress(link, address); err != nil {
			return err
		}
	}
	for _, gateway := range u.Settings.Gateways {
		if err := addGateway(link, gateway); err != nil {
			return err
		}
	}
	u.Log.Info("the network is up", "interface", link.Attrs().Name, "addresses", joinTexts(u.Settings.Addresses))
	return u.setResolver(nil, "")
}

func addAddress(link netlink.Link, address netip.Prefix) error {
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), address.Addr().BitLen())}}
	if err := netlink.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("address %s on %s: %w", address, link.Attrs().Name, err)
	}
	return nil
}

func addGateway(link netlink.Link, gateway netip.Addr) error {
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice()}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("default route by %s on %s: %w", gateway, link.Attrs().Name, err)
	}
	return nil
}

// setResolver writes the name servers: those of the settings, or else those that were offered.
func (u *up) setResolver(offered []netip.Addr, domain string) error {
	servers := u.Settings.DNS
	if len(servers) == 0 {
		servers = offered
	}
	if len(servers) == 0 {
		return nil
	}
	var b strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	if domain != "" {
		fmt.Fprintf(&b, "search %s\n", domain)
	}
	if err := u.WriteResolver(b.String()); err != nil {
		return fmt.Errorf("writing the name servers: %w", err)
	}
	return nil
}
