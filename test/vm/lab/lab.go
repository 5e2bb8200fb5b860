// Package lab runs a test binary in network and mount namespaces of its own, with a bridge that virtual servers are connected to. Nothing that the
// test sends leaves them, and they vanish with the process, however it ends.
package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// inside marks the environment of the process within the namespaces.
const inside = "INGOT_VM_NAMESPACE"

// Bridge is the interface of the provisioning network, and Address this process's address on it.
const (
	Bridge  = "provision"
	Address = "10.77.0.1"
	Prefix  = "10.77.0.0/24"
)

// Main is for TestMain: it runs the tests in the namespaces and exits. Without the right to make them, the tests run where they are, and
// Require skips them.
func Main(m *testing.M) {
	if os.Getenv(inside) == "" && os.Geteuid() == 0 {
		os.Exit(runInside())
	}
	os.Exit(m.Run())
}

// runInside starts this program again within the namespaces and returns its exit code.
func runInside() int {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), inside+"=1")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	// The child gets the signals too, and says how it ended.
	signal.Ignore(os.Interrupt)
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the tests in namespaces of their own:", err)
		return 1
	}
	return 0
}

// IsInside reports whether the process is within the namespaces.
func IsInside() bool { return os.Getenv(inside) != "" }

// MakeBridge starts the loopback interface and makes the bridge, unless they are there.
func MakeBridge() error {
	if _, err := netlink.LinkByName(Bridge); err == nil {
		return nil
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return err
	}
	// Without an address of its own a bridge takes the lowest one of its ports, so that it changes with a new port, and whoever has spoken to it sends
	// to the old one for half a minute.
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: Bridge, HardwareAddr: net.HardwareAddr{0x52, 0x54, 0x00, 0x00, 0x00, 0xfe}}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("making the bridge: %w", err)
	}
	_, prefix, err := net.ParseCIDR(Prefix)
	if err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(Address), Mask: prefix.Mask}}
	return errors.Join(netlink.AddrAdd(bridge, address), netlink.LinkSetUp(bridge))
}

// AddTap makes a tap interface on the bridge, for one virtual server, unless it is there.
func AddTap(name string) error {
	if _, err := netlink.LinkByName(name); err == nil {
		return nil
	}
	bridge, err := netlink.LinkByName(Bridge)
	if err != nil {
		return err
	}
	tap := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP}
	if err := netlink.LinkAdd(tap); err != nil {
		return fmt.Errorf("making %s: %w", name, err)
	}
	return errors.Join(netlink.LinkSetMaster(tap, bridge), netlink.LinkSetUp(tap))
}

// AddMachine adds an interface with the MAC address whose cable ends at the bridge: a machine without a processor, for tests that speak for it.
func AddMachine(name string, mac net.HardwareAddr) error {
	bridge, err := netlink.LinkByName(Bridge)
	if err != nil {
		return err
	}
	port := name + "-port"
	machine := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: mac}, PeerName: port}
	if err := netlink.LinkAdd(machine); err != nil {
		return fmt.Errorf("making the machine %s: %w", name, err)
	}
	peer, err := netlink.LinkByName(port)
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetMaster(peer, bridge), netlink.LinkSetUp(peer), netlink.LinkSetUp(machine))
}
