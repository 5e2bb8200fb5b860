package dhcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
	"golang.org/x/time/rate"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/strangers"
)

// Host is a known host.
type Host struct {
	// Address is the address that is leased to it; invalid where none is leased.
	Address netip.Addr
	// Lease is what its lease says beside the address, and BootURL the base URL of its boot service, where they differ from those of the Network.
	Lease   *LeaseSettings
	BootURL string
}

// Options configure a Server. Network, Interface and Find are required.
type Options struct {
	Network Network
	// Interface is the network interface of the provisioning network. Requests of other interfaces are not read.
	Interface string
	// Find returns the host with the MAC address; found is false for a stranger. relay is the address of the relay agent that the request came by, on
	// the host's own network; invalid where it came directly.
	Find func(ctx context.Context, mac string, relay netip.Addr) (host Host, found bool, err error)
	// Relays are the relay agents whose requests are answered. Without this list: a program on another network names itself as the relay and is told of every host.
	Relays []netip.Addr
	// Clock is the current time; nil: time.Now.
	Clock func() time.Time
	// NoteStranger is called for a request of a stranger that wants to boot from the network; nil: nothing.
	NoteStranger func(strangers.Sighting)
	// Count is called for each request, for metrics; nil: nothing. answer is one of the Answer constants; both have few values, whatever is sent.
	Count func(stage Stage, answer string)
	// Log gets a line for each answer; nil: nothing is logged.
	Log *slog.Logger
}

// Answers to requests, as Options.Count is told them.
const (
	AnswerOffer = "offer"
	AnswerAck   = "ack"
	AnswerNak   = "nak"
	// AnswerNone is given to a known host whose request is for another server, or has nothing to boot here.
	AnswerNone = "none"
	// AnswerStranger is none, because the MAC address is nobody's.
	AnswerStranger = "stranger"
	// AnswerRelay is none, because the relay agent is not one of Options.Relays.
	AnswerRelay = "relay"
	// AnswerLimited is none, because the host has asked too often.
	AnswerLimited = "limited"
	// AnswerFailed is none, because the host cannot be looked up or has no address left, or the answer could not be sent.
	AnswerFailed = "failed"
)

// answerNames are the counted names of message types.
var answerNames = map[dhcpv4.MessageType]string{dhcpv4.MessageTypeOffer: AnswerOffer, dhcpv4.MessageTypeAck: AnswerAck, dhcpv4.MessageTypeNak: AnswerNak}

// Server answers DHCP requests.
type Server struct {
	options Options
	ctx     context.Context

	mu sync.Mutex
	// asked limits the requests of each host that is known, so that its size is bounded by their number.
	asked map[string]*rate.Limiter
}

// A boot has about ten requests within a minute: firmware, iPXE and the agent ask one after the other, and each asks again a few times.
const (
	requestBurst    = 30
	requestInterval = time.Second
)

func newServer(ctx context.Context, options Options) *Server {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Count == nil {
		options.Count = func(Stage, string) {}
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	return &Server{options: options, ctx: ctx, asked: map[string]*rate.Limiter{}}
}

// canAsk reports whether the host has not asked too often, and counts that it has asked.
func (s *Server) canAsk(mac string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limiter := s.asked[mac]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Every(requestInterval), requestBurst)
		s.asked[mac] = limiter
	}
	return limiter.AllowN(s.options.Clock(), 1)
}

// Serve answers until ctx ends.
func Serve(ctx context.Context, options Options) error {
	s := newServer(ctx, options)
	ports := []int{dhcpv4.ServerPort}
	if options.Network.Lease == nil {
		ports = append(ports, proxyPort)
	}
	failed := make(chan error, len(ports))
	var servers []*server4.Server
	for _, port := range ports {
		server, err := server4.NewServer(options.Interface, &net.UDPAddr{IP: net.IPv4zero, Port: port}, s.handler(port == proxyPort))
		if err != nil {
			for _, opened := range servers {
				err = errors.Join(err, opened.Close())
			}
			return fmt.Errorf("DHCP on %s port %d: %w: does another DHCP server run on this machine, and may this program use the port (CAP_NET_BIND_SERVICE, CAP_NET_RAW)?", options.Interface, port, err)
		}
		servers = append(servers, server)
	}
	for _, server := range servers {
		go func() { failed <- server.Serve() }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	for _, server := range servers {
		err = errors.Join(err, server.Close())
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// handler returns the function that answers the packets of one port.
func (s *Server) handler(isProxyPort bool) server4.Handler {
	return func(conn net.PacketConn, peer net.Addr, request *dhcpv4.DHCPv4) {
		reply, name := s.answer(request, isProxyPort)
		if reply != nil {
			if _, err := conn.WriteTo(reply.ToBytes(), s.destination(peer, request, reply, isProxyPort)); err != nil {
				name = AnswerFailed
				s.options.Log.Warn("a DHCP answer could not be sent", "mac", request.ClientHWAddr, "error", err)
			}
		}
		if name != "" {
			s.options.Count(StageOf(request), name)
		}
	}
}

// answer finds the host and returns the answer, nil for none, and the name that it is counted by, empty for a packet that is no request.
func (s *Server) answer(request *dhcpv4.DHCPv4, isProxyPort bool) (reply *dhcpv4.DHCPv4, name string) {
	if request.OpCode != dhcpv4.OpcodeBootRequest || len(request.ClientHWAddr) != 6 {
		return nil, ""
	}
	mac := request.ClientHWAddr.String()
	relay, _ := netip.AddrFromSlice(request.GatewayIPAddr.To4())
	if relay.IsUnspecified() {
		relay = netip.Addr{}
	}
	if relay.IsValid() && !slices.Contains(s.options.Relays, relay) {
		s.options.Log.Warn("DHCP: a request by a relay agent that is not in boot.network.relays is not answered", "relay", relay, "mac", mac)
		return nil, AnswerRelay
	}
	host, found, err := s.options.Find(s.ctx, mac, relay)
	if err != nil {
		s.options.Log.Warn("a DHCP request is not answered", "mac", mac, "error", err)
		return nil, AnswerFailed
	}
	if !found {
		if s.options.NoteStranger != nil && StageOf(request) != StageSystem {
			s.options.NoteStranger(s.sighting(request, mac, relay))
		}
		return nil, AnswerStranger
	}
	if !s.canAsk(mac) {
		return nil, AnswerLimited
	}
	if reply = s.options.Network.of(host).Answer(request, host.Address, isProxyPort); reply == nil {
		return nil, AnswerNone
	}
	s.options.Log.Info("DHCP", "mac", mac, "asked", request.MessageType(), "stage", StageOf(request), "answer", reply.MessageType(), "address", reply.YourIPAddr, "boots", reply.BootFileNameOption())
	return reply, answerNames[reply.MessageType()]
}

// sighting returns what is noted of a stranger's request.
func (s *Server) sighting(request *dhcpv4.DHCPv4, mac string, relay netip.Addr) strangers.Sighting {
	seen := strangers.Sighting{MAC: mac, Asked: strangers.AskedDHCP, Vendor: request.ClassIdentifier(), Interface: s.options.Interface}
	if architectures := request.ClientArch(); len(architectures) > 0 {
		seen.Architecture = architectures[0].String()
	}
	if relay.IsValid() {
		seen.From = "relay " + relay.String()
	}
	return seen
}

// destination returns where the answer goes (RFC 2131, section 4.1): to a relay, to the client's address if it has one, or to everybody on the
// link.
func (s *Server) destination(peer net.Addr, request, reply *dhcpv4.DHCPv4, isProxyPort bool) net.Addr {
	switch {
	case isProxyPort:
		return peer
	case !request.GatewayIPAddr.IsUnspecified():
		return &net.UDPAddr{IP: request.GatewayIPAddr, Port: dhcpv4.ServerPort}
	case !request.ClientIPAddr.IsUnspecified() && reply.MessageType() != dhcpv4.MessageTypeNak:
		return &net.UDPAddr{IP: request.ClientIPAddr, Port: dhcpv4.ClientPort}
	}
	return &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ClientPort}
}

func maskOf(p netip.Prefix) net.IPMask { return net.CIDRMask(p.Bits(), p.Addr().BitLen()) }

func toIPs(addresses []netip.Addr) []net.IP {
	out := make([]net.IP, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, a.AsSlice())
	}
	return out
}
