package dhcp_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/dhcp"
)

var (
	mac     = net.HardwareAddr{0x52, 0x54, 0, 0xaa, 0, 1}
	address = netip.MustParseAddr("10.20.0.50")
	server  = netip.MustParseAddr("10.20.0.2")
)

// network is a network with the lease settings; nil makes the service a proxy.
func network(lease *dhcp.LeaseSettings) dhcp.Network {
	return dhcp.Network{
		Server: server, BootURL: "http://10.20.0.2:8090", Lease: lease,
		Programs: map[iana.Arch]dhcp.Program{
			iana.EFI_X86_64: {File: "snponly.efi"}, iana.EFI_X86_64_HTTP: {Path: "/programs/snponly.efi"}, iana.INTEL_X86PC: {File: "undionly.kpxe"},
			iana.EFI_ARM64_HTTP: {OwnFile: "arm64.efi"},
		},
	}
}

func leasing() dhcp.Network {
	return network(&dhcp.LeaseSettings{Prefix: netip.MustParsePrefix("10.20.0.0/23"), Router: netip.MustParseAddr("10.20.0.1"), DNS: []netip.Addr{server}, Time: time.Hour})
}

// request makes a request of the client.
func request(t *testing.T, kind dhcpv4.MessageType, options ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	r, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(mac), dhcpv4.WithMessageType(kind)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func class(vendor string, arch iana.Arch) []dhcpv4.Modifier {
	return []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(vendor)), dhcpv4.WithOption(dhcpv4.OptClientArch(arch)),
		dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(97), []byte("\x00uuid-of-16-bytes"))),
	}
}

func TestEachStageGetsWhatItCanBoot(t *testing.T) {
	ipxe := append(class("PXEClient:Arch:00007", iana.EFI_X86_64), dhcpv4.WithUserClass("iPXE", false))
	for _, c := range []struct {
		name    string
		options []dhcpv4.Modifier
		file    string
		vendor  string
	}{
		{"UEFI PXE", class("PXEClient:Arch:00007:UNDI:003000", iana.EFI_X86_64), "snponly.efi", "PXEClient"},
		{"BIOS PXE", class("PXEClient:Arch:00000:UNDI:002001", iana.INTEL_X86PC), "undionly.kpxe", "PXEClient"},
		{"UEFI HTTP boot", class("HTTPClient:Arch:00016:UNDI:003001", iana.EFI_X86_64_HTTP), "http://10.20.0.2:8090/programs/snponly.efi", "HTTPClient"},
		{"UEFI HTTP boot of arm64", class("HTTPClient:Arch:00019:UNDI:003001", iana.EFI_ARM64_HTTP), "http://10.20.0.2:8090/boot/52:54:00:aa:00:01/arm64.efi", "HTTPClient"},
		{"iPXE", ipxe, "http://10.20.0.2:8090/boot/52:54:00:aa:00:01", "PXEClient"},
		{"an operating system", nil, "", ""},
		{"an architecture without a program", class("PXEClient:Arch:00011", iana.EFI_ARM64), "", ""},
	} {
		reply := leasing().Answer(request(t, dhcpv4.MessageTypeDiscover, c.options...), address, false)
		if reply == nil || reply.MessageType() != dhcpv4.MessageTypeOffer || !reply.YourIPAddr.Equal(address.AsSlice()) {
			t.Errorf("%s is leased no address: %v", c.name, reply)
			continue
		}
		if reply.BootFileNameOption() != c.file || reply.BootFileName != c.file || reply.ClassIdentifier() != c.vendor {
			t.Errorf("%s boots %q, %q as %q", c.name, reply.BootFileNameOption(), reply.BootFileName, reply.ClassIdentifier())
		}
		if c.vendor != "" && reply.GetOneOption(dhcpv4.GenericOptionCode(97)) == nil {
			t.Errorf("%s does not get its identifier back", c.name)
		}
		if ones, _ := reply.SubnetMask().Size(); ones != 23 || len(reply.Router()) != 1 || len(reply.DNS()) != 1 || reply.IPAddressLeaseTime(0) != time.Hour {
			t.Errorf("%s: the lease is not whole: %v", c.name, reply.Summary())
		}

		proxied := network(nil).Answer(request(t, dhcpv4.MessageTypeDiscover, c.options...), netip.Addr{}, false)
		if (proxied != nil) != (c.file != "") {
			t.Errorf("beside another server, %s gets %v", c.name, proxied)
		}
		if proxied != nil && (!proxied.YourIPAddr.IsUnspecified() || proxied.SubnetMask() != nil || proxied.BootFileNameOption() != c.file) {
			t.Errorf("beside another server, %s gets %v", c.name, proxied.Summary())
		}
	}
}

func TestALeaseIsGivenToWhoAsksForItsAddress(t *testing.T) {
	wants := func(ip string) dhcpv4.Modifier {
		return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.ParseIP(ip).To4()))
	}
	of := func(ip string) dhcpv4.Modifier {
		return dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.ParseIP(ip).To4()))
	}
	for _, c := range []struct {
		name    string
		request *dhcpv4.DHCPv4
		address netip.Addr
		want    dhcpv4.MessageType
	}{
		{"its own", request(t, dhcpv4.MessageTypeRequest, wants("10.20.0.50"), of("10.20.0.2")), address, dhcpv4.MessageTypeAck},
		{"a renewal", request(t, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.IPv4(10, 20, 0, 50))), address, dhcpv4.MessageTypeAck},
		{"another", request(t, dhcpv4.MessageTypeRequest, wants("10.20.0.51")), address, dhcpv4.MessageTypeNak},
		{"of another server", request(t, dhcpv4.MessageTypeRequest, wants("10.20.0.50"), of("10.20.0.9")), address, dhcpv4.MessageTypeNone},
		{"of a host without an address", request(t, dhcpv4.MessageTypeRequest, wants("10.20.0.50")), netip.Addr{}, dhcpv4.MessageTypeNone},
		{"a discovery of a host without an address", request(t, dhcpv4.MessageTypeDiscover), netip.Addr{}, dhcpv4.MessageTypeNone},
		{"an inform", request(t, dhcpv4.MessageTypeInform), netip.Addr{}, dhcpv4.MessageTypeAck},
		{"a release", request(t, dhcpv4.MessageTypeRelease), address, dhcpv4.MessageTypeNone},
	} {
		got := dhcpv4.MessageTypeNone
		if reply := leasing().Answer(c.request, c.address, false); reply != nil {
			got = reply.MessageType()
		}
		if got != c.want {
			t.Errorf("%s: %s, expected %s", c.name, got, c.want)
		}
	}
}

func TestAProxyLeavesTheLeaseToTheOtherServer(t *testing.T) {
	pxe := class("PXEClient:Arch:00007", iana.EFI_X86_64)
	if reply := network(nil).Answer(request(t, dhcpv4.MessageTypeRequest, pxe...), netip.Addr{}, false); reply != nil {
		t.Errorf("a request for a lease is answered: %v", reply)
	}
	reply := network(nil).Answer(request(t, dhcpv4.MessageTypeRequest, pxe...), netip.Addr{}, true)
	if reply == nil || reply.MessageType() != dhcpv4.MessageTypeAck || reply.BootFileNameOption() != "snponly.efi" {
		t.Errorf("a request at port 4011: %v", reply)
	}
}

func FuzzAnswer(f *testing.F) {
	seed, err := dhcpv4.NewDiscovery(mac)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed.ToBytes(), true, true)
	f.Fuzz(func(t *testing.T, packet []byte, leases, toProxyPort bool) {
		r, err := dhcpv4.FromBytes(packet)
		if err != nil {
			return
		}
		n := network(nil)
		if leases {
			n = leasing()
		}
		if reply := n.Answer(r, address, toProxyPort); reply != nil {
			wire := reply.ToBytes()
			read, err := dhcpv4.FromBytes(wire)
			if err != nil {
				t.Fatalf("the answer cannot be read: %v", err)
			}
			// What comes back of the request is bounded by it, so that nobody is flooded by requests in somebody else's name.
			if len(wire) > len(packet)+700 || read.OpCode != dhcpv4.OpcodeBootReply || read.TransactionID != r.TransactionID || read.ClientHWAddr.String() != r.ClientHWAddr.String() {
				t.Errorf("%d bytes are answered by %d: %s", len(packet), len(wire), read.Summary())
			}
			if leased := read.YourIPAddr; !leased.IsUnspecified() && (!leases || !leased.Equal(address.AsSlice())) {
				t.Errorf("%s is leased", leased)
			}
		}
	})
}

func TestAnAnswerThroughARelayReachesTheClient(t *testing.T) {
	circuit := dhcpv4.OptRelayAgentInfo(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(1), []byte("port-7")))
	r := request(t, dhcpv4.MessageTypeRequest, dhcpv4.WithRelay(net.IPv4(10, 20, 0, 1)), dhcpv4.WithOption(circuit),
		dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(10, 20, 0, 51))), dhcpv4.WithBroadcast(false))
	reply := leasing().Answer(r, address, false)
	if reply == nil || reply.MessageType() != dhcpv4.MessageTypeNak {
		t.Fatalf("a request for another host's address gets %v", reply)
	}
	if !reply.IsBroadcast() || !reply.GatewayIPAddr.Equal(net.IPv4(10, 20, 0, 1)) {
		t.Errorf("the relay is not told to broadcast the refusal: %s", reply.Summary())
	}
	if got := reply.RelayAgentInfo(); got == nil || string(got.Get(dhcpv4.GenericOptionCode(1))) != "port-7" {
		t.Errorf("the relay's own option (RFC 3046) does not come back: %v", got)
	}
}
