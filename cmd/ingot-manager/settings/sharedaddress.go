package settings

import (
	"fmt"
	"net/netip"
	"net/url"
)

// ParseSharedAddress returns the shared address. It is invalid where there is none.
func (n Network) ParseSharedAddress() (netip.Prefix, error) {
	if n.SharedAddress == "" {
		return netip.Prefix{}, nil
	}
	prefix, err := netip.ParsePrefix(n.SharedAddress)
	switch {
	case err != nil || prefix.Addr().IsMulticast() || prefix.Addr().IsUnspecified() || prefix.Addr().IsLoopback(),
		prefix.Bits() < prefix.Addr().BitLen()-1 && prefix == prefix.Masked():
		return prefix, fmt.Errorf("boot.network.sharedAddress: got %q; expected an address with the length of its network, such as 10.20.0.2/23", n.SharedAddress)
	case n.Interface == "":
		return prefix, fmt.Errorf("boot.network.interface: got nothing; expected the interface that boot.network.sharedAddress is added to")
	case n.Address == prefix.Addr().String():
		return prefix, fmt.Errorf("boot.network.sharedAddress: got %q, which is boot.network.address; expected an address that no node has", n.SharedAddress)
	}
	return prefix, nil
}

// validateSharedAddress also compares the address with that of the URL. Without it: the replicas keep an address that no server asks.
func (b Boot) validateSharedAddress() error {
	prefix, err := b.Network.ParseSharedAddress()
	if err != nil || !prefix.IsValid() {
		return err
	}
	asked, err := url.Parse(b.URL)
	if err != nil {
		return nil // boot.url is refused for itself
	}
	if address, err := netip.ParseAddr(asked.Hostname()); err == nil && address != prefix.Addr() {
		return fmt.Errorf("boot.url: got %q; expected the address of boot.network.sharedAddress, %s, or a name", b.URL, prefix.Addr())
	}
	return nil
}
