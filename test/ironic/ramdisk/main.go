//go:build linux

// Command ramdisk is process 1 of a ramdisk that stands for the one with Ironic's agent: it brings up the network, speaks the agent's protocol with the Ironic that
// the kernel command line names, and does to the server's first disk what it is told.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware/agent"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/blockdev"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/modules"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/network"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/sysfs"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/ironic/disk"
)

// port is that which Ironic's agent listens on. https://docs.openstack.org/ironic-python-agent/latest/
const port = "9999"

// networkTimeout is how long the network may take.
const networkTimeout = 5 * time.Minute

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if os.Getpid() != 1 {
		os.Exit(1) // The kernel asks for a module by its name. Those of devices are loaded without it.
	}
	// Process 1 must not return: the kernel would panic.
	if err := run(context.Background(), log, os.DirFS("/")); err != nil {
		log.Error("the agent ends", "error", err)
	}
	select {}
}

// run starts the agent, and waits until it powers the machine off.
func run(ctx context.Context, log *slog.Logger, root fs.FS) error {
	if err := mountKernelFilesystems(); err != nil {
		return err
	}
	line, err := fs.ReadFile(root, "proc/cmdline")
	if err != nil {
		return err
	}
	arguments := parse(string(line))
	log.Info("Ironic's agent of the tests", "ironic", arguments["ipa-api-url"])
	if err := prepareMachine(ctx, log, root, arguments["ipa-api-url"]); err != nil {
		return err
	}
	target, err := openDisk(ctx, root)
	if err != nil {
		return err
	}
	address, mac, err := ownAddress(arguments["ipa-api-url"])
	if err != nil {
		return err
	}
	size := target.Info().SizeBytes
	_, err = ironic.NewAgent(arguments["ipa-api-url"], mac, ironic.AgentOptions{
		Listen: net.JoinHostPort(address, port), Token: arguments["ipa-agent-token"], PowerOff: func() { go powerOff(log) },
		WriteImage: func(ctx context.Context, image ironic.Image, configDrive string) error {
			if len(image.URLs) == 0 {
				return errors.New("the image has no URL")
			}
			log.Info("the image is written", "url", image.URLs[0], "disk", target.Info().Name)
			err := errors.Join(target.Discard(0, size), disk.Write(ctx, target, size, disk.Image{URL: image.URLs[0], SHA256: image.Hash}, configDrive), target.Sync())
			log.Info("the image was written", "error", err)
			return err
		},
		Erase: func(step string) error {
			log.Info("the disk is erased", "step", step)
			erase := disk.EraseTables
			if step == "erase_devices" {
				erase = disk.EraseAll
			}
			return errors.Join(erase(target, size), target.Sync())
		},
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func mountKernelFilesystems() error {
	for _, mount := range []struct{ kind, path string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		if err := os.MkdirAll(mount.path, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(mount.kind, mount.path, mount.kind, 0, ""); err != nil && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("mount %s: %w", mount.path, err)
		}
	}
	return nil
}

// parse returns the arguments NAME=VALUE of a kernel command line.
func parse(line string) map[string]string {
	out := map[string]string{}
	for _, word := range strings.Fields(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			out[name] = value
		}
	}
	return out
}

// prepareMachine loads the modules of the devices and waits for an address by DHCP.
func prepareMachine(ctx context.Context, log *slog.Logger, root fs.FS, endpoint string) error {
	release, err := modules.Release()
	if err != nil {
		return err
	}
	index, err := modules.ReadIndex(root, release)
	if err != nil {
		return err
	}
	loader := &modules.Loader{Root: root, Index: index, Log: log, Insert: func(file string) error { return modules.Insert("/"+file, "") }}
	loader.LoadForDevices()
	go loader.Watch(ctx, agent.SystemClock{}, time.Second)
	config := network.Config{Network: cmdline.Network{}, Clock: agent.SystemClock{}, Log: log, WriteResolver: func(string) error { return nil }}
	if base, err := url.Parse(endpoint); err == nil {
		config.Target, _ = netip.ParseAddr(base.Hostname())
	}
	limited, cancel := context.WithTimeout(ctx, networkTimeout)
	defer cancel()
	return network.Up(limited, ctx, config)
}

// openDisk opens the first disk.
func openDisk(ctx context.Context, root fs.FS) (*blockdev.Device, error) {
	if err := sysfs.WaitForDisks(ctx, root, agent.SystemClock{}); err != nil {
		return nil, err
	}
	disks, _, err := sysfs.ReadDisks(root)
	if err != nil {
		return nil, err
	}
	if len(disks) == 0 {
		return nil, errors.New("there is no disk")
	}
	return blockdev.OpenDevice(disks[0].Disk, disks[0].SectorSize)
}

// ownAddress returns the address by which this machine reaches the endpoint, and the MAC address of that interface.
func ownAddress(endpoint string) (address, mac string, err error) {
	base, err := url.Parse(endpoint)
	if err != nil {
		return "", "", err
	}
	probe, err := net.Dial("udp", base.Host) //nolint:noctx // nothing is sent
	if err != nil {
		return "", "", err
	}
	own := probe.LocalAddr().(*net.UDPAddr).IP
	_ = probe.Close()
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", "", err
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			return "", "", err
		}
		for _, a := range addresses {
			if prefix, ok := a.(*net.IPNet); ok && prefix.IP.Equal(own) {
				return own.String(), i.HardwareAddr.String(), nil
			}
		}
	}
	return "", "", fmt.Errorf("no interface has the address %s", own)
}

// powerOff powers the machine off, after Ironic has had its answer.
func powerOff(log *slog.Logger) {
	time.Sleep(time.Second)
	syscall.Sync()
	log.Error("the machine did not power off", "error", syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF))
}
