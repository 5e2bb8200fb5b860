package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// DHCPServer is the site's own DHCP server, which knows nothing of Ingot: dnsmasq, in a network namespace of its own with a cable to the bridge.
type DHCPServer struct {
	command *exec.Cmd
	// Log is the file with what it did.
	Log string
}

// dhcpScript waits for the cable and starts dnsmasq. $1 is the interface, $2 the directory, $3 and $4 the first and the last address, and the others are further
// options.
const dhcpScript = `
until ip link show "$1" >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip addr add 10.77.0.3/24 dev "$1"
ip link set "$1" up
nic=$1 dir=$2 range=$3,$4,1h
shift 4
exec dnsmasq --no-daemon --conf-file=/dev/null --port=0 --interface="$nic" --bind-interfaces --user=root --group=root --pid-file \
	--dhcp-range="$range" --dhcp-leasefile="$dir/leases" --dhcp-authoritative --log-dhcp "$@"
`

// BootFrom are the options of a DHCP server that has servers load iPXE from the directory with the programs, by TFTP, and iPXE the script at the URL.
func BootFrom(programs, script string) []string {
	return []string{"--enable-tftp", "--tftp-root=" + programs, "--dhcp-userclass=set:ipxe,iPXE", "--dhcp-boot=tag:ipxe," + script, "--dhcp-boot=tag:!ipxe,snponly.efi"}
}

// StartDHCPServer starts a DHCP server that leases the addresses from first to last to everybody, with further options of dnsmasq. Its files are in dir.
func StartDHCPServer(dir, first, last string, options ...string) (*DHCPServer, error) {
	const nic, port = "site-dhcp", "site-dhcp-port"
	s := &DHCPServer{Log: filepath.Join(dir, "dnsmasq.log")}
	log, err := os.Create(s.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.command = exec.Command("sh", append([]string{"-ec", dhcpScript, "dnsmasq", nic, dir, first, last}, options...)...)
	s.command.Stdout, s.command.Stderr = log, log
	s.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	bridge, err := netlink.LinkByName(Bridge)
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: port}, PeerName: nic}); err != nil {
		return nil, errors.Join(fmt.Errorf("making the cable of the DHCP server: %w", err), s.Stop())
	}
	own, err := netlink.LinkByName(port)
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	peer, err := netlink.LinkByName(nic)
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	err = errors.Join(netlink.LinkSetMaster(own, bridge), netlink.LinkSetUp(own), netlink.LinkSetNsPid(peer, s.command.Process.Pid))
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the server.
func (s *DHCPServer) Stop() error {
	if s == nil {
		return nil
	}
	_ = s.command.Process.Signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- s.command.Wait() }()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		_ = s.command.Process.Kill()
		<-ended
	}
	return nil
}
