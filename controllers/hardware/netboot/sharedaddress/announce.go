package sharedaddress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// announce tells the network that the address is here. Without it: switches and servers send to the machine that had it, until their tables age,
// which takes minutes.
func (a *Address) announce(link *netlink.LinkAttrs) error {
	var err error
	switch {
	case len(link.HardwareAddr) != ethernetAddress:
		return nil // no Ethernet, so there are no such tables
	case a.Prefix.Addr().Is4():
		err = sendARP(link, a.Prefix.Addr())
	default:
		err = sendNeighborAdvertisement(a.Interface, link.HardwareAddr, a.Prefix.Addr())
	}
	if err != nil {
		return fmt.Errorf("announce %s on %s: %w: the process needs CAP_NET_RAW", a.Prefix.Addr(), a.Interface, err)
	}
	return nil
}

const ethernetAddress = 6

// arpAnnouncement returns an ARP request in which sender and target are the address (RFC 5227, section 3): every machine that knows the address
// takes it over, and none answers.
func arpAnnouncement(mac net.HardwareAddr, address netip.Addr) []byte {
	const (
		ethernet, request = 1, 1
		broadcast         = "\xff\xff\xff\xff\xff\xff"
	)
	frame := append([]byte(broadcast), mac...)
	frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_ARP)
	frame = binary.BigEndian.AppendUint16(frame, ethernet)
	frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_IP)
	frame = append(frame, ethernetAddress, 4)
	frame = binary.BigEndian.AppendUint16(frame, request)
	frame = append(append(frame, mac...), address.AsSlice()...)
	frame = append(frame, make([]byte, ethernetAddress)...)
	return append(frame, address.AsSlice()...)
}

func sendARP(link *netlink.LinkAttrs, address netip.Addr) (err error) {
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	return unix.Sendto(socket, arpAnnouncement(link.HardwareAddr, address), 0, &unix.SockaddrLinklayer{Ifindex: link.Index, Halen: ethernetAddress})
}

// sendNeighborAdvertisement sends an unsolicited advertisement (RFC 4861, section 7.2.6) to all nodes.
func sendNeighborAdvertisement(name string, mac net.HardwareAddr, address netip.Addr) (err error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	conn, _, err := ndp.Listen(link, ndp.Unspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.WriteTo(&ndp.NeighborAdvertisement{
		Override: true, TargetAddress: address, Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: mac}},
	}, nil, netip.MustParseAddr("ff02::1"))
}
