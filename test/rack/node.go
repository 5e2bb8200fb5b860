package rack

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/kubelet"
	"github.com/ingot-dev/ingot/test/rack/software"
)

// kubeletUnit is the unit file in images. It names no cluster.
const kubeletUnit = "[Unit]\nDescription=kubelet\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n"

// runNode runs kubelet until ctx ends, if the system has started it.
func (s *Server) runNode(ctx context.Context, system bootedMachine) {
	if !system.IsRunning("kubelet") {
		s.log.Warn("kubelet was not started", "why", system.Failure("kubelet"))
		if why := system.Failure("kubelet"); why != nil {
			s.setActivity("kubelet was not started: %v", why)
		}
		return
	}
	if system.Image.Software.Kubelet == "" {
		s.log.Warn("kubelet.service failed: the image holds no kubelet")
		return
	}
	node, err := s.newKubelet(system)
	if err != nil {
		s.log.Warn("kubelet.service failed", "error", err)
		s.setActivity("%v", err)
		return
	}
	if s.step(ctx, StepKubelet) != nil {
		return
	}
	s.mu.Lock()
	s.state.Node = node.NodeName()
	s.mu.Unlock()
	if err := node.Run(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("kubelet ended", "error", err)
		s.setActivity("kubelet ended: %v", err)
	}
}

func (s *Server) newKubelet(system bootedMachine) (*kubelet.Kubelet, error) {
	command, err := system.Command("kubelet", kubeletUnit)
	if err != nil {
		return nil, err
	}
	present := s.drivenHardware()
	timing, host := s.rack.options.Timing, s.plugins(system)
	return kubelet.New(kubelet.Options{
		Arguments: command, ReadFile: system.ReadFile, ListFiles: system.FilesBelow, Hostname: system.Hostname, Address: s.address(),
		Hardware: kubelet.Hardware{CPUs: present.CPUThreads, MemoryBytes: present.MemoryBytes, DiskBytes: s.inventory.Disks[0].SizeBytes},
		NodeInfo: s.nodeInfo(system), Annotations: system.Annotations, Storage: nodeFiles{s}, Plugins: host, Drivers: host, Clock: s.rack.options.Clock, Wait: s.rack.wait,
		Container: timing.Container, Plugin: timing.Plugin, Log: s.log, HasLink: func() bool { return !s.Faults().Dark },
	})
}

// address returns an address of the benchmarking network (RFC 2544), which nothing uses. It follows from the server's MAC address.
func (s *Server) address() string {
	octets := strings.Split(s.BootMAC(), ":")
	var a, b int
	if _, err := fmt.Sscanf(octets[3]+" "+octets[4], "%x %x", &a, &b); err != nil {
		return "198.18.0.1"
	}
	return fmt.Sprintf("198.18.%d.%d", a, b)
}

// nodeInfo returns the system information of the Node: that on the hardware from DMI, that on the software from the installed image.
func (s *Server) nodeInfo(system bootedMachine) corev1.NodeSystemInfo {
	software := system.Image.Software
	return corev1.NodeSystemInfo{
		MachineID: fmt.Sprintf("%x", sha256.Sum256([]byte(s.UUID()+system.InstanceID)))[:32], SystemUUID: s.UUID(), BootID: system.id, KernelVersion: system.Image.Kernel,
		OSImage: system.PrettyName(), ContainerRuntimeVersion: "containerd://" + software.Containerd, KubeletVersion: "v" + software.Kubelet,
		OperatingSystem: "linux", Architecture: s.inventory.Architecture,
	}
}

// plugins returns the host on which the vendors' pods run in this boot.
func (s *Server) plugins(system bootedMachine) software.Host {
	return software.Host{Machine: system.Machine, IncompletePool: s.Faults().IncompletePool}
}

// newUUID returns a random UUID (RFC 9562 version 4).
func newUUID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails, see crypto/rand
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

// nodeFiles stores the files of /var/lib/kubelet/pki.
type nodeFiles struct{ server *Server }

// Load implements kubelet.Keep.
func (f nodeFiles) Load(name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(f.server.statePath(), name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Save implements kubelet.Keep.
func (f nodeFiles) Save(name string, content []byte) error { return f.server.saveFile(name, content) }
