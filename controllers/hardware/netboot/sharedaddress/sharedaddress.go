package sharedaddress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Address is an address with the length of its network, and the interface that gets it.
type Address struct {
	Interface string
	Prefix    netip.Prefix
	// Clock returns the current time.
	Clock func() time.Time
}

// Prepare removes what an earlier process has left. It refuses an address that somebody has configured on the interface for ever.
func (a *Address) Prepare() error {
	found, err := a.find()
	if err != nil || found == nil {
		return err
	}
	if found.Flags&unix.IFA_F_PERMANENT != 0 {
		// Without it: the machine answers for the address also while another one has it.
		return fmt.Errorf("%s is configured on %s: remove it from this machine's network configuration, because the boot service adds it where it is needed", a.Prefix, a.Interface)
	}
	return a.Remove()
}

// Keep adds the address, or prolongs it, until the time, and announces it. It never lasts longer: a time that is less than a second away is an error
// and removes the address.
func (a *Address) Keep(until time.Time) error {
	link, err := netlink.LinkByName(a.Interface)
	if err != nil {
		return fmt.Errorf("interface %s: %w", a.Interface, err)
	}
	seconds := int(until.Sub(a.Clock()) / time.Second) // the kernel counts whole seconds
	if seconds < 1 {
		return errors.Join(fmt.Errorf("no time is left to keep %s", a.Prefix), a.Remove())
	}
	wanted := a.netlinkAddress()
	wanted.ValidLft = seconds
	// No duplicate address detection for IPv6: it would take a second, and the address moves on purpose.
	wanted.Flags = unix.IFA_F_NODAD
	if err := netlink.AddrReplace(link, wanted); err != nil {
		return fmt.Errorf("add %s to %s: %w: the process needs CAP_NET_ADMIN in the network of the node", a.Prefix, a.Interface, err)
	}
	return a.announce(link.Attrs())
}

// Remove removes the address. It succeeds when the address is not there.
func (a *Address) Remove() error {
	found, err := a.find()
	if err != nil || found == nil {
		return err
	}
	link, err := netlink.LinkByName(a.Interface)
	if err != nil {
		return fmt.Errorf("interface %s: %w", a.Interface, err)
	}
	if err := netlink.AddrDel(link, a.netlinkAddress()); err != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("remove %s from %s: %w", a.Prefix, a.Interface, err)
	}
	return nil
}

// IsHere reports whether the interface has the address.
func (a *Address) IsHere() (bool, error) {
	found, err := a.find()
	return found != nil, err
}

func (a *Address) netlinkAddress() *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.Prefix.Addr().AsSlice(), Mask: net.CIDRMask(a.Prefix.Bits(), a.Prefix.Addr().BitLen())}}
}

// find returns the address as the interface has it, or nil.
func (a *Address) find() (*netlink.Addr, error) {
	link, err := netlink.LinkByName(a.Interface)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", a.Interface, err)
	}
	all, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", a.Interface, err)
	}
	for i := range all {
		if ip, ok := netip.AddrFromSlice(all[i].IP); ok && ip.Unmap() == a.Prefix.Addr() {
			return &all[i], nil
		}
	}
	return nil, nil
}
