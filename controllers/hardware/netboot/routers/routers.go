// Package routers answers the router solicitations of known hosts with an advertisement that offers no route and no address. iPXE configures IPv6
// before it loads a boot document, and waits 16 seconds for a router where there is none.
//
// The advertisement has a router lifetime of 0 (RFC 4861, section 4.2) and is sent to the host alone, so that it changes nothing for other
// machines, or where a router answers too.
package routers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/ipv6"
)

// Serve answers on the interface until ctx ends. isHost reports whether the MAC address is that of a known host.
func Serve(ctx context.Context, name string, isHost func(mac string) bool, log *slog.Logger) error {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("the provisioning network: %w", err)
	}
	conn, _, err := ndp.Listen(link, ndp.LinkLocal)
	if err != nil {
		return fmt.Errorf("router solicitations on %s: %w: may this program use raw sockets (CAP_NET_RAW), and has the interface a link-local address?", name, err)
	}
	stop := context.AfterFunc(ctx, func() {
		if err := conn.Close(); err != nil {
			log.Warn("closing", "error", err)
		}
	})
	defer stop()
	// Without it the socket gets the messages of all kinds.
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterSolicitation)
	if err := errors.Join(conn.SetICMPFilter(&filter), conn.JoinGroup(netip.MustParseAddr("ff02::2"))); err != nil {
		return errors.Join(fmt.Errorf("router solicitations on %s: %w", name, err), conn.Close())
	}
	for {
		message, _, from, err := conn.ReadFrom()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			var netErr net.Error
			if errors.As(err, &netErr) {
				return fmt.Errorf("router solicitations on %s: %w", name, err)
			}
			continue // A message that is malformed.
		}
		solicitation, ok := message.(*ndp.RouterSolicitation)
		mac, known := sourceOf(solicitation, ok)
		if !known || !isHost(mac) || !from.IsLinkLocalUnicast() {
			continue
		}
		if err := conn.WriteTo(&ndp.RouterAdvertisement{CurrentHopLimit: 64}, nil, from); err != nil {
			log.Warn("a router solicitation is not answered", "mac", mac, "error", err)
		}
	}
}

// sourceOf returns the MAC address that the solicitation names.
func sourceOf(solicitation *ndp.RouterSolicitation, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	for _, option := range solicitation.Options {
		if address, ok := option.(*ndp.LinkLayerAddress); ok && address.Direction == ndp.Source {
			return address.Addr.String(), true
		}
	}
	return "", false
}
