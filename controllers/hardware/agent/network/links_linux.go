package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
)

// prepareLinks makes the bond and the VLAN, and waits until an interface has a link. It returns the interfaces that get addresses.
func (u *up) prepareLinks(ctx context.Context, links []netlink.Link) ([]netlink.Link, error) {
	var err error
	if u.Network.Bond != nil {
		if links, err = u.addBond(links); err != nil {
			return nil, u.fail("making the bond", err)
		}
	}
	for _, link := range links {
		if u.Network.VLAN != 0 {
			// What a router says outside the VLAN is not meant.
			if err := ignoreRouters(link.Attrs().Name); err != nil {
				u.Log.Warn("routers outside the VLAN are not ignored", "interface", link.Attrs().Name, "error", err)
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return nil, u.fail("starting "+link.Attrs().Name, err)
		}
	}
	if err := u.waitForLink(ctx, links); err != nil {
		return nil, err
	}
	if u.Network.VLAN != 0 {
		if links, err = u.addVLANs(links); err != nil {
			return nil, u.fail(fmt.Sprintf("making VLAN %d", u.Network.VLAN), err)
		}
	}
	return links, nil
}

// waitForLink waits until an interface has a link. A bond with LACP has one before its partner agrees; until then nothing passes, and DHCP
// asks again.
func (u *up) waitForLink(ctx context.Context, links []netlink.Link) error {
	return u.wait(ctx, func() bool { return slices.ContainsFunc(links, hasLink) }, func() *Failure {
		nics := ListNICs()
		return &Failure{
			Reason: LinkMissing, Message: fmt.Sprintf("expected a link at %s, seen: %s", names(links), describe(nics)), NICs: nics,
			Look: "at the cable, the transceiver and the switch port",
		}
	})
}

// names returns the names and addresses of interfaces.
func names(links []netlink.Link) string {
	text := ""
	for _, link := range links {
		if text != "" {
			text += ", "
		}
		text += link.Attrs().Name + " " + link.Attrs().HardwareAddr.String()
	}
	return text
}

// bondName is the name of the bond. It is not bond0, because the kernel's module makes one of that name when it is loaded (max_bonds,
// Documentation/networking/bonding.rst of Linux), and making the bond would fail.
const bondName = "boot-bond"

// miimon is how often the kernel looks whether a member has a link, in milliseconds.
const miimon = 100

// addBond makes the bond of the interfaces, with the MAC address that the server boots with: a DHCP server knows that one.
func (u *up) addBond(members []netlink.Link) ([]netlink.Link, error) {
	mac := members[0].Attrs().HardwareAddr
	if boot, err := net.ParseMAC(u.Network.MAC); err == nil {
		mac = boot
	}
	bond := netlink.NewLinkBond(netlink.LinkAttrs{Name: bondName, HardwareAddr: mac})
	bond.Mode, bond.Miimon = netlink.StringToBondMode(u.Network.Bond.Mode), miimon
	if bond.Mode == netlink.BOND_MODE_802_3AD {
		bond.LacpRate = netlink.BOND_LACP_RATE_FAST
	}
	if err := netlink.LinkAdd(bond); err != nil {
		return nil, err
	}
	for _, member := range members {
		// The kernel takes only an interface that is down.
		if err := errors.Join(netlink.LinkSetDown(member), netlink.LinkSetMaster(member, bond), netlink.LinkSetUp(member)); err != nil {
			return nil, fmt.Errorf("adding %s: %w", member.Attrs().Name, err)
		}
	}
	u.Log.Info("the bond is made", "mode", u.Network.Bond.Mode, "members", names(members), "mac", mac.String())
	made, err := netlink.LinkByIndex(bond.Index)
	if err != nil {
		return nil, err
	}
	return []netlink.Link{made}, nil
}

// addVLANs makes the VLAN on each interface.
func (u *up) addVLANs(links []netlink.Link) ([]netlink.Link, error) {
	var out []netlink.Link
	for _, link := range links {
		// The name of an interface has 15 characters at most.
		name := fmt.Sprintf("%.10s.%d", link.Attrs().Name, u.Network.VLAN)
		vlan := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: name, ParentIndex: link.Attrs().Index}, VlanId: u.Network.VLAN, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q}
		if err := errors.Join(netlink.LinkAdd(vlan), netlink.LinkSetUp(vlan)); err != nil {
			return nil, fmt.Errorf("on %s: %w", link.Attrs().Name, err)
		}
		made, err := netlink.LinkByIndex(vlan.Index)
		if err != nil {
			return nil, err
		}
		out = append(out, made)
	}
	return out, nil
}
