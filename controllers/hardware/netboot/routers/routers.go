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
	if err := receiveSolicitations(conn); err != nil {
		return errors.Join(fmt.Errorf("router solicitations on %s: %w", name, err), conn.Close())
	}
	for {
		err := answerNext(conn, isHost, log)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("router solicitations on %s: %w", name, err)
		}
	}
}

// answerNext waits for the next message and answers it when a host asks. The error is that of a connection that cannot be used any more.
func answerNext(conn *ndp.Conn, isHost func(mac string) bool, log *slog.Logger) error {
	message, _, from, err := conn.ReadFrom()
	if err != nil {
		var netErr net.Error
		if errors.As(err, &netErr) {
			return err
		}
		return nil // A message that is malformed.
	}
	mac := sourceOf(message)
	if mac == "" || !from.IsLinkLocalUnicast() || !isHost(mac) {
		return nil
	}
	if err := conn.WriteTo(&ndp.RouterAdvertisement{CurrentHopLimit: 64}, nil, from); err != nil {
		log.Warn("a router solicitation is not answered", "mac", mac, "error", err)
	}
	return nil
}

// receiveSolicitations makes the connection receive what is sent to all routers, and router solicitations only.
func receiveSolicitations(conn *ndp.Conn) error {
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterSolicitation)
	return errors.Join(conn.SetICMPFilter(&filter), conn.JoinGroup(netip.MustParseAddr("ff02::2")))
}

// sourceOf returns the MAC address that the solicitation names; empty when it names none.
func sourceOf(message ndp.Message) string {
	solicitation, ok := message.(*ndp.RouterSolicitation)
	if !ok {
		return ""
	}
	for _, option := range solicitation.Options {
		if address, ok := option.(*ndp.LinkLayerAddress); ok && address.Direction == ndp.Source {
			return address.Addr.String()
		}
	}
	return ""
}
