package dhcp

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/strangers"
)

// answers records what is sent, by the MAC address that it is for.
type answers struct {
	net.PacketConn
	mu    sync.Mutex
	byMAC map[string]*dhcpv4.DHCPv4
}

func (a *answers) WriteTo(packet []byte, _ net.Addr) (int, error) {
	reply, err := dhcpv4.FromBytes(packet)
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byMAC[reply.ClientHWAddr.String()] = reply
	return len(packet), nil
}

func addressOfNumber(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 20, byte(i >> 8), byte(i)})
}

// numbered returns a MAC address that says its number. Those from 0x10000 on are strangers'.
func numbered(i int) net.HardwareAddr {
	mac := net.HardwareAddr{0x52, 0x54, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(mac[2:], uint32(i))
	return mac
}

func TestAThousandServersThatAskAtOnceAreAnswered(t *testing.T) {
	const clients, firstStranger = 1000, 0x10000
	var seen strangers.List
	var offers, strange, others atomic.Int32
	server := newServer(t.Context(), Options{
		Network: Network{
			Server: netip.MustParseAddr("10.20.0.2"), BootURL: "http://10.20.0.2:8090", Programs: map[iana.Arch]Program{iana.EFI_X86_64: {File: "snponly.efi"}},
			Lease: &LeaseSettings{Prefix: netip.MustParsePrefix("10.20.0.0/16"), Time: time.Hour},
		},
		Interface: "eth1", Log: slog.New(slog.DiscardHandler), NoteStranger: func(s strangers.Sighting) { seen.Note(s, time.Now()) },
		Count: func(stage Stage, answer string) {
			switch {
			case stage == StagePXE && answer == AnswerOffer:
				offers.Add(1)
			case stage == StagePXE && answer == AnswerStranger:
				strange.Add(1)
			default:
				others.Add(1)
			}
		},
		Find: func(_ context.Context, mac string, _ netip.Addr) (Host, bool, error) {
			hardware, err := net.ParseMAC(mac)
			if err != nil {
				return Host{}, false, err
			}
			number := int(binary.BigEndian.Uint32(hardware[2:]))
			return Host{Address: addressOfNumber(number)}, number < firstStranger, nil
		},
	})
	conn := &answers{byMAC: map[string]*dhcpv4.DHCPv4{}}
	handle := server.handler(false)
	var group sync.WaitGroup
	for i := range clients {
		for _, number := range []int{i, firstStranger + i} {
			request, err := dhcpv4.NewDiscovery(numbered(number), dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007")), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64)))
			if err != nil {
				t.Fatal(err)
			}
			group.Go(func() { handle(conn, &net.UDPAddr{IP: net.IPv4zero, Port: dhcpv4.ClientPort}, request) })
		}
	}
	group.Wait()
	for i := range clients {
		reply := conn.byMAC[numbered(i).String()]
		if reply == nil || reply.MessageType() != dhcpv4.MessageTypeOffer || reply.YourIPAddr.String() != addressOfNumber(i).String() || reply.BootFileNameOption() != "snponly.efi" {
			t.Fatalf("client %d: %v", i, reply)
		}
	}
	if len(conn.byMAC) != clients {
		t.Errorf("%d answers for %d hosts: strangers were answered", len(conn.byMAC), clients)
	}
	if offers.Load() != clients || strange.Load() != clients || others.Load() != 0 {
		t.Errorf("%d offers, %d strangers and %d others are counted", offers.Load(), strange.Load(), others.Load())
	}
	all, _ := seen.Changed()
	if len(all) != strangers.Max || all[0].Architecture != iana.EFI_X86_64.String() || all[0].Vendor != "PXEClient:Arch:00007" || all[0].Interface != "eth1" {
		t.Errorf("%d strangers are remembered, one of them as %+v", len(all), all[0])
	}
}

// BenchmarkAThousandServersAsk answers the discoveries of 1,000 servers, each as it comes from the network.
func BenchmarkAThousandServersAsk(b *testing.B) {
	now := time.Unix(1e9, 0)
	server := newServer(b.Context(), Options{
		Network: Network{
			Server: netip.MustParseAddr("10.20.0.2"), BootURL: "http://10.20.0.2:8090", Programs: map[iana.Arch]Program{iana.EFI_X86_64: {File: "snponly.efi"}},
			Lease: &LeaseSettings{Prefix: netip.MustParsePrefix("10.20.0.0/16"), Time: time.Hour},
		},
		Interface: "eth1", Log: slog.New(slog.DiscardHandler), Count: func(Stage, string) {}, NoteStranger: func(strangers.Sighting) {}, Clock: func() time.Time { return now },
		Find: func(_ context.Context, mac string, _ netip.Addr) (Host, bool, error) {
			return Host{Address: addressOfNumber(7)}, true, nil
		},
	})
	conn, handle := &answers{byMAC: map[string]*dhcpv4.DHCPv4{}}, server.handler(false)
	var packets [][]byte
	for i := range 1000 {
		request, err := dhcpv4.NewDiscovery(numbered(i), dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007")), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64)))
		if err != nil {
			b.Fatal(err)
		}
		packets = append(packets, request.ToBytes())
	}
	for b.Loop() {
		now = now.Add(requestInterval) // each may ask again
		for _, packet := range packets {
			request, err := dhcpv4.FromBytes(packet)
			if err != nil {
				b.Fatal(err)
			}
			handle(conn, &net.UDPAddr{IP: net.IPv4zero, Port: dhcpv4.ClientPort}, request)
		}
	}
	if len(conn.byMAC) != len(packets) {
		b.Errorf("%d of %d are answered", len(conn.byMAC), len(packets))
	}
}
