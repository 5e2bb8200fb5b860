package metal3rack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
	"github.com/ingot-dev/ingot/test/rack"
)

// attemptLimit is longer than any operation on a server.
const attemptLimit = time.Hour

// server is a server of the rack as the baremetal-operator drives it. It implements baremetaloperator.Server.
type server struct {
	site   *Site
	server *rack.Server

	mu sync.Mutex
	// work is what is under way on the server; nil: nothing.
	work   *work
	number int64
	// owner is the node whose installation is on the disk; empty: none, or an erased one.
	owner string
	// power is the change of power that is under way.
	power hardware.PowerChange
}

// work is an operation on the server. Its attempt is given up when another operation begins.
type work struct {
	name    string
	attempt hardware.Attempt
}

// host returns the server with the credentials of the Secret that its BareMetalHost names.
func (s *server) host(ctx context.Context) (hardware.Host, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.site.options.Namespace, Name: s.server.Name() + "-bmc"}
	if err := s.site.client.Get(ctx, key, secret); err != nil {
		return hardware.Host{}, fmt.Errorf("read the credentials of the BMC: %w", err)
	}
	return hardware.Host{
		UID: s.server.UUID(), Namespace: key.Namespace, Name: s.server.Name(), BootMAC: s.server.BootMAC(),
		BMC: hardware.Endpoint{
			Address: s.server.BMCAddress(), SystemPath: s.server.SystemPath(), CABundle: s.site.options.Rack.CA(),
			Username: string(secret.Data["username"]), Password: string(secret.Data["password"]),
		},
	}, nil
}

// Register implements baremetaloperator.Server.
func (s *server) Register(ctx context.Context) string {
	host, err := s.host(ctx)
	if err != nil {
		return err.Error()
	}
	if _, err := s.site.installer.Observe(ctx, host); err != nil && !isPassing(err) {
		return err.Error()
	}
	return ""
}

// isPassing reports whether the error of a BMC ends by itself.
func isPassing(err error) bool {
	kind := hardware.KindOf(err)
	return kind == hardware.Busy || kind == hardware.SessionsExhausted
}

// Inspect implements baremetaloperator.Server.
func (s *server) Inspect(ctx context.Context) (*baremetaloperator.Hardware, baremetaloperator.Progress) {
	seen, progress := s.advance(ctx, "inspect", func(host hardware.Host, attempt hardware.Attempt) error {
		return s.site.installer.Inspect(ctx, host, attempt, hardware.InspectByAgent)
	})
	if !progress.Done || seen.Inventory == nil {
		return nil, progress
	}
	return &baremetaloperator.Hardware{HardwareDetails: hardwareDetails(*seen.Inventory, s.server.BootMAC())}, progress
}

// PoweredOn implements baremetaloperator.Server.
func (s *server) PoweredOn(ctx context.Context) (bool, error) {
	host, err := s.host(ctx)
	if err != nil {
		return false, err
	}
	seen, err := s.site.installer.Observe(ctx, host)
	return seen.Power != hardware.PowerOff, err
}

// SetPower implements baremetaloperator.Server.
func (s *server) SetPower(ctx context.Context, on bool) baremetaloperator.Progress {
	host, err := s.host(ctx)
	if err != nil {
		return baremetaloperator.Progress{Problem: err.Error()}
	}
	desired := hardware.PowerOff
	if on {
		desired = hardware.PowerOn
	}
	seen, err := s.site.installer.Observe(ctx, host)
	if err == nil && seen.Power == desired {
		s.setChange(hardware.PowerChange{})
		return baremetaloperator.Progress{Done: true}
	}
	if err == nil {
		err = s.site.installer.SetPower(ctx, host, s.setChange(hardware.PowerChange{Desired: desired, Graceful: true}))
	}
	if err != nil && !isPassing(err) {
		return baremetaloperator.Progress{Problem: err.Error()}
	}
	return baremetaloperator.Progress{}
}

// setChange returns the change of power with the time at which it was first wanted.
func (s *server) setChange(change hardware.PowerChange) hardware.PowerChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.power.Desired != change.Desired {
		s.power = change
		s.power.Since = time.Now()
	}
	return s.power
}

// Deploy implements baremetaloperator.Server.
func (s *server) Deploy(ctx context.Context, d baremetaloperator.Deployment) baremetaloperator.Progress {
	s.site.store.setDrive(s.server.UUID(), hardware.ConfigDrive{UserData: d.UserData, NetworkData: d.NetworkData, MetaData: d.MetaData})
	s.beginDeploy(d.MetaData)
	_, progress := s.advance(ctx, "deploy "+d.URL, func(host hardware.Host, attempt hardware.Attempt) error {
		return s.site.installer.Install(ctx, host, attempt, hardware.InstallSpec{Image: hardware.Image{URL: d.URL, Checksum: d.Checksum, Format: d.Format}})
	})
	return progress
}

// Clean implements baremetaloperator.Server.
func (s *server) Clean(ctx context.Context, mode metal3.AutomatedCleaningMode) baremetaloperator.Progress {
	erase := hardware.EraseMetadata
	if mode == metal3.CleaningModeDisabled {
		erase = hardware.EraseNone
	}
	name := "clean " + string(mode)
	if node := s.server.State().Node; node != "" && !s.isUnderWay(name) {
		s.site.violate("host %s was to be cleaned while its server ran node %s", s.server.Name(), node)
	}
	_, progress := s.advance(ctx, name, func(host hardware.Host, attempt hardware.Attempt) error {
		return s.site.installer.Erase(ctx, host, attempt, erase)
	})
	if progress.Done && erase == hardware.EraseMetadata {
		s.setOwner("")
	}
	return progress
}

// beginDeploy notes a violation where the disk has what was installed for another Machine.
func (s *server) beginDeploy(metaData []byte) {
	var node struct {
		Name string `json:"local-hostname"`
	}
	if err := json.Unmarshal(metaData, &node); err != nil {
		s.site.violate("host %s is installed with meta data that is no JSON: %v", s.server.Name(), err)
		return
	}
	if before := s.setOwner(node.Name); before != "" && before != node.Name {
		s.site.violate("host %s is installed for %s before the disk of %s was erased", s.server.Name(), node.Name, before)
	}
}

// setOwner changes whose node is on the disk, and returns whose was.
func (s *server) setOwner(node string) (before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.owner = s.owner, node
	return before
}

func (s *server) isUnderWay(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.work != nil && s.work.name == name
}

// advance calls do for the attempt of the operation, and returns how far it is. Another operation begins another attempt.
func (s *server) advance(ctx context.Context, name string, do func(hardware.Host, hardware.Attempt) error) (hardware.Observation, baremetaloperator.Progress) {
	host, err := s.host(ctx)
	if err != nil {
		return hardware.Observation{}, baremetaloperator.Progress{Problem: err.Error()}
	}
	attempt := s.attempt(name)
	if err := do(host, attempt); err != nil && !isPassing(err) && hardware.KindOf(err) != hardware.Unreachable {
		s.end()
		return hardware.Observation{}, baremetaloperator.Progress{Problem: err.Error()}
	}
	seen, err := s.site.installer.Observe(ctx, host)
	if err != nil || seen.Attempt == nil || seen.Attempt.Number != attempt.Number {
		return seen, baremetaloperator.Progress{}
	}
	switch seen.Attempt.State {
	case hardware.AttemptSucceeded:
		s.end()
		return seen, baremetaloperator.Progress{Done: true}
	case hardware.AttemptFailed:
		s.end()
		return seen, baremetaloperator.Progress{Problem: fmt.Sprintf("%s: %s", seen.Attempt.Reason, seen.Attempt.Message)}
	}
	return seen, baremetaloperator.Progress{}
}

// attempt returns the attempt of the operation, a new one where another operation or none was under way.
func (s *server) attempt(name string) hardware.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work == nil || s.work.name != name {
		s.number++
		s.work = &work{name: name, attempt: hardware.Attempt{Number: s.number, Deadline: time.Now().Add(attemptLimit)}}
		s.power = hardware.PowerChange{}
	}
	return s.work.attempt
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = nil
}

const (
	bytesPerMiB = 1 << 20
	// mbpsPerGbps: network speeds are decimal.
	mbpsPerGbps = 1000
)

// hardwareDetails returns what Metal3's inspection says of a server. GPUs are not part of it.
func hardwareDetails(found hardware.Inventory, bootMAC string) metal3.HardwareDetails {
	out := metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: found.Manufacturer, ProductName: found.Model, SerialNumber: found.SerialNumber},
		Firmware:     metal3.Firmware{BIOS: metal3.BIOS{Version: found.BIOSVersion}},
		RAMMebibytes: int(found.MemoryBytes / bytesPerMiB),
		CPU:          metal3.CPU{Arch: found.Architecture, Model: found.CPUModel, Count: found.CPUThreads},
	}
	for _, nic := range found.NICs {
		out.NIC = append(out.NIC, metal3.NIC{Name: nic.Name, MAC: nic.MAC, SpeedGbps: nic.SpeedMbps / mbpsPerGbps, PXE: strings.EqualFold(nic.MAC, bootMAC)})
	}
	for _, disk := range found.Disks {
		out.Storage = append(out.Storage, metal3.Storage{Name: disk.Name, Model: disk.Model, SerialNumber: disk.SerialNumber, WWN: disk.WWN, SizeBytes: metal3.Capacity(disk.SizeBytes)})
	}
	return out
}
