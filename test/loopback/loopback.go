// Package loopback finds addresses for servers that cannot listen on a port of the kernel's choice.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
)

// Host returns an address of the loopback, 127.0.0.0/8, that nothing else uses. A server may take seconds until it listens, and at 127.0.0.1 the
// kernel gives its port to somebody else meanwhile: to another listener, or to the near end of a connection.
func Host() string {
	host := 1<<8 + rand.IntN(1<<24-1<<9) //nolint:gosec // any will do
	return netip.AddrFrom4([4]byte{127, byte(host >> 16), byte(host >> 8), byte(host)}).String()
}

// Networks returns what every test server's address is in, for settings that name networks.
func Networks() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8)}
}

// FreePort returns a port that is free at the host. It stays free when the host is one of Host, but for a listener at every address.
func FreePort(host string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err == nil {
		err = listener.Close()
	}
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

// FreeAddress returns a host of Host with a port.
func FreeAddress() (string, error) {
	host := Host()
	port, err := FreePort(host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, port), nil
}
