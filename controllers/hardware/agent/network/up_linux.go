package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
)

// Clock returns the time and sleeps.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Config configures Up.
type Config struct {
	Network cmdline.Network
	Clock   Clock
	Log     *slog.Logger
	// Target is the address of the boot service, which decides the family of the address that the server needs; invalid: any does.
	Target netip.Addr
	// WriteResolver writes the name servers where the program's resolver reads them.
	WriteResolver func(content string) error
	// OnFailure is called when something is missing for patience, and again at intervals; nil: it is only logged.
	OnFailure func(*Failure)
	// Patience is how long something may be missing before it is reported. 0 means 45 seconds: drivers of cards with many ports take 10 to 30, and a
	// switch that learns of a link by spanning tree blocks it for 30.
	Patience time.Duration
}

const (
	defaultPatience = 45 * time.Second
	poll            = 250 * time.Millisecond
)

// Up brings up the network and returns when the server has an address and a route to the boot service, or with a *Failure in the error when ctx ends
// before. Leases are renewed until background ends.
func Up(ctx, background context.Context, config Config) error {
	if config.Patience <= 0 {
		config.Patience = defaultPatience
	}
	if loopback, err := netlink.LinkByName("lo"); err == nil {
		if err := netlink.LinkSetUp(loopback); err != nil {
			config.Log.Warn("the loopback interface is not up", "error", err)
		}
	}
	u := &up{Config: config, background: background, resolvers: map[string][]netip.Addr{}, answers: map[string]string{}}
	links, err := u.findLinks(ctx)
	if err != nil {
		return err
	}
	if links, err = u.prepareLinks(ctx, links); err != nil {
		return err
	}
	if len(config.Network.Addresses) > 0 {
		return u.useStatic(ctx, links[0])
	}
	return u.askForAddress(ctx, links)
}

// up is one run of Up.
type up struct {
	Config
	background context.Context

	mu sync.Mutex
	// chosen is the index of the interface whose lease is used; 0: none is.
	chosen int
	// resolvers are the name servers by who named them.
	resolvers map[string][]netip.Addr
	domain    string
	// answers are the last answers of servers and routers by interface, for a person.
	answers map[string]string
}

// wait calls isDone until it returns true. What is missing is reported when it lasts, and returned when ctx ends.
func (u *up) wait(ctx context.Context, isDone func() bool, failure func() *Failure) error {
	reportAt := u.Clock.Now().Add(u.Patience)
	for !isDone() {
		if err := u.Clock.Sleep(ctx, poll); err != nil {
			return errors.Join(failure(), err)
		}
		if now := u.Clock.Now(); !now.Before(reportAt) {
			startIdlePorts()
			u.report(failure())
			reportAt = now.Add(u.Patience)
		}
	}
	return nil
}

// report logs a failure and passes it on.
func (u *up) report(failure *Failure) {
	failure.NICs = ListNICs()
	u.Log.Error("the network is not up", "reason", string(failure.Reason), "error", failure.Message, "look", failure.Look, "interfaces", describe(failure.NICs))
	if u.OnFailure != nil {
		u.OnFailure(failure)
	}
}

// fail returns a failure of the kernel. It is not waited for: what the kernel refuses once, it refuses again.
func (u *up) fail(what string, err error) error {
	return &Failure{
		Reason: SetupFailed, Message: what + ": " + err.Error(), NICs: ListNICs(),
		Look: "at the kernel's messages, and at the NodeProvider's spec.redfish.netboot.network",
	}
}

// findLinks waits until the interfaces of the configuration are there.
func (u *up) findLinks(ctx context.Context) ([]netlink.Link, error) {
	if bond := u.Network.Bond; bond != nil {
		return u.findMembers(ctx, *bond)
	}
	var links []netlink.Link
	err := u.wait(ctx, func() bool {
		ports, err := listPorts()
		if err != nil {
			return false
		}
		if u.Network.MAC == "" {
			links = nil
			for _, p := range ports {
				links = append(links, p.link)
			}
			return len(links) > 0
		}
		boot, found := findPort(ports, u.Network.MAC)
		links = []netlink.Link{boot.link}
		return found
	}, func() *Failure { return missingNIC(u.Network.MAC) })
	return links, err
}

func missingNIC(mac string) *Failure {
	nics := ListNICs()
	if mac == "" {
		return &Failure{Reason: NICMissing, Message: "the server has no network interface", Look: "whether the ramdisk has the module of its card", NICs: nics}
	}
	return &Failure{
		Reason: NICMissing, Message: fmt.Sprintf("expected an interface with the MAC address %s, seen: %s", mac, describe(nics)), NICs: nics,
		Look: "whether spec.bootMACAddress of the host is an address of this server, and whether the ramdisk has the module of its card",
	}
}

// memberWait is how long further members of a bond may take after the first: the ports of one card appear one after the other.
const memberWait = 15 * time.Second

// findMembers waits for the members of the bond. A member that does not appear is left out, because a bond is there for the failure of a port.
func (u *up) findMembers(ctx context.Context, bond cmdline.Bond) ([]netlink.Link, error) {
	var links []netlink.Link
	var missing []string
	var firstSeen time.Time
	err := u.wait(ctx, func() bool {
		if links, missing = listMembers(bond, u.Network.MAC); len(links) == 0 {
			return false
		}
		if firstSeen.IsZero() {
			firstSeen = u.Clock.Now()
		}
		isComplete := len(bond.MACs) > 0 && len(missing) == 0
		return isComplete || !u.Clock.Now().Before(firstSeen.Add(memberWait))
	}, func() *Failure { return missingNIC(strings.Join(missing, ", ")) })
	if err == nil && (len(missing) > 0 || len(links) == 1) {
		u.Log.Warn("the bond has fewer members than it should", "members", len(links), "missing", missing, "interfaces", describe(ListNICs()))
	}
	return links, err
}

// listMembers returns the members of the bond that are there, and the MAC addresses of those that are not. Without named members they are the ports
// of the card that the server boots from.
func listMembers(bond cmdline.Bond, bootMAC string) (links []netlink.Link, missing []string) {
	wanted := bond.MACs
	if len(wanted) == 0 {
		wanted = []string{bootMAC}
	}
	ports, err := listPorts()
	if err != nil {
		return nil, wanted
	}
	for _, mac := range wanted {
		p, found := findPort(ports, mac)
		switch {
		case !found:
			missing = append(missing, mac)
		case len(bond.MACs) == 0:
			for _, sibling := range portsOfCard(ports, p) {
				links = append(links, sibling.link)
			}
		default:
			links = append(links, p.link)
		}
	}
	return links, missing
}
