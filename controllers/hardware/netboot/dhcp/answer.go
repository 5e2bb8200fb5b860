package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// Network is the provisioning network.
type Network struct {
	// Server is this service's address on the network.
	Server netip.Addr
	// BootURL is the base URL of the boot service, "http://10.20.0.2:8090".
	BootURL string
	// Programs are the boot programs by client architecture.
	Programs map[iana.Arch]Program
	// Lease is set where this service leases addresses; nil: it is a proxy beside another server.
	Lease *LeaseSettings
}

// LeaseSettings are what leases say beside the address.
type LeaseSettings struct {
	// Prefix is the network of the addresses.
	Prefix netip.Prefix
	// Router is the default gateway; invalid: none.
	Router netip.Addr
	// DNS are the name servers.
	DNS []netip.Addr
	// Time is how long a lease is valid.
	Time time.Duration
}

// Program is a program that firmware loads.
type Program struct {
	// File is its name at the TFTP server, for PXE.
	File string
	// Path is where the boot service serves it, below the URL that the host reaches it at, for UEFI HTTP boot: "/programs/snponly.efi".
	Path string
	// OwnFile is the last part of the URL of a program that the boot service makes for each host, which is below that of its boot document, for UEFI HTTP
	// boot: "arm64.efi".
	OwnFile string
}

// Options that are set as they are on the wire.
const (
	optionPXEVendor     = dhcpv4.GenericOptionCode(43)
	optionClientUUID    = dhcpv4.GenericOptionCode(97)
	optionIPXE          = dhcpv4.GenericOptionCode(175)
	vendorPXE           = "PXEClient"
	vendorHTTP          = "HTTPClient"
	userClassIPXE       = "iPXE"
	proxyPort           = 4011
	encapsulatedNoPXE   = 176 // https://ipxe.org/cfg/no-pxedhcp
	pxeDiscoveryControl = 6   // PXE specification 2.1, table 2-1: bit 3 tells the client to boot the file at once
)

// Stage is who asks.
type Stage string

// Stages.
const (
	// StagePXE is firmware that loads a program by TFTP.
	StagePXE Stage = "PXE"
	// StageHTTP is firmware that loads a program by HTTP.
	StageHTTP Stage = "HTTP"
	// StageIPXE is iPXE, which loads a boot document.
	StageIPXE Stage = "iPXE"
	// StageSystem is the agent or an operating system, which boots nothing.
	StageSystem Stage = "system"
)

// StageOf returns who sent the request.
func StageOf(request *dhcpv4.DHCPv4) Stage {
	vendor := request.ClassIdentifier()
	switch {
	case slices.ContainsFunc(request.UserClass(), func(class string) bool { return strings.HasPrefix(class, userClassIPXE) }):
		return StageIPXE
	case strings.HasPrefix(vendor, vendorHTTP):
		return StageHTTP
	case strings.HasPrefix(vendor, vendorPXE):
		return StagePXE
	}
	return StageSystem
}

// of returns the network as it is for the host.
func (n Network) of(host Host) Network {
	if host.BootURL != "" {
		n.BootURL = host.BootURL
	}
	if n.Lease != nil && host.Lease != nil {
		n.Lease = host.Lease
	}
	return n
}

// Answer returns the answer to the request of a known host, or nil when there is none to give. address is the host's address where addresses are
// leased; toProxyPort says that the request came to port 4011.
func (n Network) Answer(request *dhcpv4.DHCPv4, address netip.Addr, toProxyPort bool) *dhcpv4.DHCPv4 {
	if request.OpCode != dhcpv4.OpcodeBootRequest {
		return nil // An answer of another server, which would be answered by a request.
	}
	stage := StageOf(request)
	kind, ok := n.answerTo(request, stage, address, toProxyPort)
	if !ok {
		return nil
	}
	reply, err := dhcpv4.NewReplyFromRequest(request, dhcpv4.WithMessageType(kind), dhcpv4.WithServerIP(n.Server.AsSlice()),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(n.Server.AsSlice())))
	if err != nil {
		return nil // A packet whose options cannot be copied is no request.
	}
	if kind == dhcpv4.MessageTypeNak {
		// RFC 2131, section 4.3.2: a relay must broadcast a refusal. Without it: a server that moved to this network still has its former
		// address, the relay sends the refusal there, and the server asks for that address until its boot has failed.
		if !request.GatewayIPAddr.IsUnspecified() {
			reply.SetBroadcast()
		}
		return reply
	}
	if n.Lease != nil {
		n.addLease(reply, request, address)
	}
	switch {
	case n.hasBoot(request, stage):
		n.addBoot(reply, request, stage)
	case n.Lease == nil && stage != StageSystem:
		return nil
	}
	return reply
}

// answerTo returns the type of the answer, false when there is none.
func (n Network) answerTo(request *dhcpv4.DHCPv4, stage Stage, address netip.Addr, toProxyPort bool) (dhcpv4.MessageType, bool) {
	isOurs := request.ServerIdentifier() == nil || request.ServerIdentifier().Equal(n.Server.AsSlice())
	if n.Lease == nil {
		switch {
		case stage == StageSystem:
			return 0, false
		case toProxyPort:
			return dhcpv4.MessageTypeAck, request.MessageType() == dhcpv4.MessageTypeRequest
		}
		// A request to port 67 is for the server of the address; the proxy answers the discovery only.
		return dhcpv4.MessageTypeOffer, request.MessageType() == dhcpv4.MessageTypeDiscover
	}
	switch request.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		return dhcpv4.MessageTypeOffer, address.IsValid()
	case dhcpv4.MessageTypeInform:
		return dhcpv4.MessageTypeAck, true
	case dhcpv4.MessageTypeRequest:
		if !isOurs || !address.IsValid() {
			return 0, false
		}
		wanted := request.RequestedIPAddress()
		if wanted == nil {
			wanted = request.ClientIPAddr
		}
		if !wanted.Equal(address.AsSlice()) {
			// RFC 2131, section 4.3.2: the address belongs to a former network or lease, and the client must begin anew.
			return dhcpv4.MessageTypeNak, true
		}
		return dhcpv4.MessageTypeAck, true
	}
	return 0, false
}

// addLease adds the address and what belongs to it. An Inform has an address already.
func (n Network) addLease(reply, request *dhcpv4.DHCPv4, address netip.Addr) {
	reply.UpdateOption(dhcpv4.OptSubnetMask(maskOf(n.Lease.Prefix)))
	if n.Lease.Router.IsValid() {
		reply.UpdateOption(dhcpv4.OptRouter(n.Lease.Router.AsSlice()))
	}
	if len(n.Lease.DNS) > 0 {
		reply.UpdateOption(dhcpv4.OptDNS(toIPs(n.Lease.DNS)...))
	}
	if request.MessageType() == dhcpv4.MessageTypeInform {
		return
	}
	reply.YourIPAddr = address.AsSlice()
	reply.UpdateOption(dhcpv4.OptIPAddressLeaseTime(n.Lease.Time))
	reply.UpdateOption(dhcpv4.OptRenewTimeValue(n.Lease.Time / 2))
}

// hasBoot reports whether there is something to boot for the stage.
func (n Network) hasBoot(request *dhcpv4.DHCPv4, stage Stage) bool {
	program, found := n.programFor(request)
	switch stage {
	case StageIPXE:
		return true
	case StageHTTP:
		return found && (program.Path != "" || program.OwnFile != "")
	case StagePXE:
		return found && program.File != ""
	}
	return false
}

// addBoot adds what the stage boots.
func (n Network) addBoot(reply, request *dhcpv4.DHCPv4, stage Stage) {
	program, _ := n.programFor(request)
	switch stage {
	case StageIPXE:
		n.addVendor(reply, request, vendorPXE)
		// Without no-pxedhcp iPXE waits some seconds for an answer from port 4011.
		reply.UpdateOption(dhcpv4.OptGeneric(optionIPXE, []byte{encapsulatedNoPXE, 1, 1}))
		setBootFile(reply, n.documentURL(request))
	case StageHTTP:
		n.addVendor(reply, request, vendorHTTP)
		if program.OwnFile != "" {
			setBootFile(reply, n.documentURL(request)+"/"+program.OwnFile)
		} else {
			setBootFile(reply, n.BootURL+program.Path)
		}
	case StagePXE:
		n.addVendor(reply, request, vendorPXE)
		reply.UpdateOption(dhcpv4.OptGeneric(optionPXEVendor, []byte{pxeDiscoveryControl, 1, 8, 255}))
		reply.UpdateOption(dhcpv4.OptTFTPServerName(n.Server.String()))
		setBootFile(reply, program.File)
	}
}

// documentURL returns the URL of the client's boot document.
func (n Network) documentURL(request *dhcpv4.DHCPv4) string {
	return n.BootURL + "/boot/" + request.ClientHWAddr.String()
}

// programFor returns the program for the first architecture of the client that has one.
func (n Network) programFor(request *dhcpv4.DHCPv4) (Program, bool) {
	for _, arch := range request.ClientArch() {
		if program, found := n.Programs[arch]; found {
			return program, true
		}
	}
	return Program{}, false
}

// addVendor adds the class by which the client knows that the answer is meant for its boot, and the client's identifier, which the
// specification wants back.
func (n Network) addVendor(reply, request *dhcpv4.DHCPv4, class string) {
	reply.UpdateOption(dhcpv4.OptClassIdentifier(class))
	if uuid := request.GetOneOption(optionClientUUID); uuid != nil {
		reply.UpdateOption(dhcpv4.OptGeneric(optionClientUUID, uuid))
	}
}

// maxFileField is the length of the field "file", with its zero at the end.
const maxFileField = 128

// setBootFile sets the name as an option and, where it fits, as the field that older firmware reads.
func setBootFile(reply *dhcpv4.DHCPv4, name string) {
	reply.UpdateOption(dhcpv4.OptBootFileName(name))
	if len(name) < maxFileField {
		reply.BootFileName = name
	}
}
