package network

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// tagSwitch is a switch with two ports that carry a VLAN with tags, and LACP if there is a bond of that mode. What has the tag goes to an interface of
// the segment without it, where the kernel's own network stack answers; what has none goes nowhere.
type tagSwitch struct {
	t *testing.T
	// lacp is true for ports that pass nothing before the server agrees to bond them.
	lacp bool
	vlan uint16
	// tap is the interface of the segment.
	tap   *os.File
	ports [2]*switchPort

	mu sync.Mutex
}

// switchPort is a port of the switch. Its cable is a socket of QEMU that passes one frame in each datagram.
type switchPort struct {
	conn   *net.UnixConn
	remote *net.UnixAddr
	// local and peer are the files of the sockets.
	local, peer string
	// isJoined is true when the port belongs to the bond; received counts the frames with the tag.
	isJoined bool
	received int
	// hasServer is true for the port from which the server sent last.
	hasServer bool
}

// IEEE 802.1AX section 6.4.2 (LACPDU) and IEEE 802.1Q section 9.6 (tag).
const (
	typeSlow, typeVLAN = 0x8809, 0x8100
	headerLength       = 14
	tagLength          = 4
	lacpLength         = 110
	// actorAt and partnerAt are where the two descriptions begin, after subtype and version; each has 20 bytes, with its state in the 17th after type
	// and length.
	actorAt, partnerAt, infoLength = 2, 22, 20
	systemAt, stateAt              = 4, 16
	// stateJoined are aggregation, synchronization, collecting and distributing; with activity and the short time-out it is what the switch says.
	stateSynchronized, stateJoined, stateSwitch = 0x08, 0x3C, 0x3F
)

var (
	slowAddress = []byte{0x01, 0x80, 0xC2, 0x00, 0x00, 0x02}
	switchMAC   = []byte{0x02, 0x00, 0x00, 0x00, 0x00, 0xFE}
)

// newTagSwitch starts a switch whose interface in the segment is called sw and has the address.
func newTagSwitch(s *segment, vlan uint16, lacp bool, address string) *tagSwitch {
	s.t.Helper()
	w := &tagSwitch{t: s.t, lacp: lacp, vlan: vlan}
	s.run(func() error {
		tap := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "sw"}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_ONE_QUEUE, NonPersist: true, Queues: 1}
		if err := netlink.LinkAdd(tap); err != nil {
			return err
		}
		w.tap = tap.Fds[0]
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(tap, parsed), netlink.LinkSetUp(tap))
	})
	dir := s.t.TempDir()
	var running sync.WaitGroup
	for i := range w.ports {
		p := &switchPort{local: filepath.Join(dir, "switch"+strconv.Itoa(i)), peer: filepath.Join(dir, "server"+strconv.Itoa(i)), isJoined: !lacp}
		p.remote = &net.UnixAddr{Net: "unixgram", Name: p.peer}
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: p.local})
		if err != nil {
			s.t.Fatal(err)
		}
		p.conn, w.ports[i] = conn, p
		running.Go(func() { w.serve(i) })
	}
	running.Go(w.serveTap)
	s.t.Cleanup(func() {
		_ = w.tap.Close()
		for _, p := range w.ports {
			_ = p.conn.Close()
		}
		running.Wait()
	})
	return w
}

// serve passes on what the server sends at a port.
func (w *tagSwitch) serve(i int) {
	p, frame := w.ports[i], make([]byte, 64<<10)
	for {
		n, err := p.conn.Read(frame)
		if err != nil {
			return
		}
		if n < headerLength+tagLength {
			continue
		}
		w.receive(i, frame[:n])
	}
}

func (w *tagSwitch) receive(i int, frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.ports[i]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case typeSlow:
		if body := frame[headerLength:]; w.lacp && len(body) >= lacpLength && body[0] == 1 {
			p.isJoined = body[actorAt+stateAt]&stateSynchronized != 0 && bytes.Equal(body[partnerAt+systemAt:][:6], switchMAC)
			w.send(p, lacpAnswer(body, i))
		}
	case typeVLAN:
		if binary.BigEndian.Uint16(frame[headerLength:])&0xFFF != w.vlan || !p.isJoined {
			return
		}
		for _, other := range w.ports {
			other.hasServer = other == p
		}
		p.received++
		untagged := append(bytes.Clone(frame[:12]), frame[12+tagLength:]...)
		if _, err := w.tap.Write(untagged); err != nil && !errors.Is(err, os.ErrClosed) {
			w.t.Errorf("passing a frame on: %v", err)
		}
	}
}

// lacpAnswer returns the switch's LACPDU about the port, which repeats what the server says of itself.
func lacpAnswer(body []byte, i int) []byte {
	out := make([]byte, headerLength+lacpLength)
	copy(out, slowAddress)
	copy(out[6:], switchMAC)
	binary.BigEndian.PutUint16(out[12:], typeSlow)
	own := out[headerLength:]
	own[0], own[1] = 1, 1
	actor := own[actorAt:]
	actor[0], actor[1] = 1, infoLength
	binary.BigEndian.PutUint16(actor[2:], 0x8000)
	copy(actor[systemAt:], switchMAC)
	binary.BigEndian.PutUint16(actor[10:], 7)
	binary.BigEndian.PutUint16(actor[12:], 0x80)
	binary.BigEndian.PutUint16(actor[14:], uint16(i)+1)
	actor[stateAt] = stateSwitch
	copy(own[partnerAt:], body[actorAt:][:infoLength])
	own[partnerAt] = 2
	collector := own[partnerAt+infoLength:]
	collector[0], collector[1] = 3, 16
	return out
}

// serveTap passes on what the segment sends: to the port from which the server sent last, and to both before.
func (w *tagSwitch) serveTap() {
	frame := make([]byte, 64<<10)
	for {
		n, err := w.tap.Read(frame)
		if err != nil {
			return
		}
		if n < headerLength {
			continue
		}
		tagged := append(bytes.Clone(frame[:12]), typeVLAN>>8, typeVLAN&0xFF, byte(w.vlan>>8), byte(w.vlan))
		w.forward(append(tagged, frame[12:n]...))
	}
}

func (w *tagSwitch) forward(frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.ports {
		if p.isJoined && p.hasServer {
			w.send(p, frame)
		}
	}
}

// send sends a frame to the server. One that is not there yet, or whose port is busy, gets none, as on a cable.
func (w *tagSwitch) send(p *switchPort, frame []byte) {
	_, err := p.conn.WriteToUnix(frame, p.remote)
	isLost := errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, net.ErrClosed)
	if err != nil && !isLost {
		w.t.Errorf("sending a frame: %v", err)
	}
}

// joined returns how many ports belong to the bond, and the frames with the tag that each received.
func (w *tagSwitch) joined() (ports int, received [2]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.ports {
		received[i] = p.received
		if p.isJoined {
			ports++
		}
	}
	return ports, received
}

// address returns the first address of a prefix.
func address(prefix string) string { return netip.MustParsePrefix(prefix).Addr().String() }
