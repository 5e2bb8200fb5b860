package metal3rack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

var errNotRegistered = errors.New("the server was never registered")

// server is a server of the rack as the baremetal-operator drives it. It implements baremetaloperator.Server. It remembers, as Ironic does, the credentials
// with which it was registered, and what is under way and installed, also while the operator is stopped.
type server struct {
	baremetaloperator.Faults
	site   *Site
	server *rack.Server

	mu sync.Mutex
	// credentials are those of the last registration. isRegistered is true when the BMC has accepted them.
	credentials  map[string][]byte
	isRegistered bool
	// installed is the URL of the image of the installation that has ended; empty: none has since the last cleaning.
	installed string
	// isClean is true when nothing was begun on the disk since the last cleaning.
	isClean bool
	// deployment is what is being installed.
	deployment baremetaloperator.Deployment
	// inventory is what the last inspection found.
	inventory *hardware.Inventory
	// work is what is under way on the server; nil: nothing.
	work   *work
	number int64
	// owner is the node whose installation is on the disk; empty: none, or an erased one.
	owner string
	// power is the change of power that is under way.
	power hardware.PowerChange
	// isPowerLost is true when the BMC did not say the power at the last look.
	isPowerLost bool
}

// work is an operation on the server. Its attempt is given up when another operation begins.
type work struct {
	name    string
	attempt hardware.Attempt
}

// host returns the server with the credentials of its registration.
func (s *server) host() (hardware.Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.credentials == nil {
		return hardware.Host{}, errNotRegistered
	}
	return hardware.Host{
		UID: s.server.UUID(), Namespace: s.site.options.Namespace, Name: s.server.Name(), BootMAC: s.server.BootMAC(),
		BMC: hardware.Endpoint{
			Address: s.server.BMCAddress(), SystemPath: s.server.SystemPath(), CABundle: s.site.options.Rack.CA(),
			Username: string(s.credentials["username"]), Password: string(s.credentials["password"]),
		},
	}, nil
}

// readCredentials reads the Secret of the BMC.
func (s *server) readCredentials(ctx context.Context) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.site.options.Namespace, Name: secretName(s.server)}
	if err := s.site.client.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("read the credentials of the BMC: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isRegistered = s.isRegistered && maps.EqualFunc(s.credentials, secret.Data, bytes.Equal)
	s.credentials = secret.Data
	return nil
}

func (s *server) setRegistered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isRegistered = true
}

// mustAskBMC reports whether the credentials are new to the BMC.
func (s *server) mustAskBMC() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.isRegistered
}

func secretName(server *rack.Server) string { return server.Name() + "-bmc" }

// Register implements baremetaloperator.Server. The BMC is asked only about credentials that are new: that a BMC has gone dark is seen by its power.
func (s *server) Register(ctx context.Context) baremetaloperator.Progress {
	if p := s.Next(baremetaloperator.Registering); !p.Done {
		return p
	}
	err := s.readCredentials(ctx)
	if err == nil && s.mustAskBMC() {
		if _, err = s.observe(ctx); err == nil {
			s.setRegistered()
		}
	}
	if err != nil && !isPassing(err) {
		return baremetaloperator.Progress{Problem: err.Error()}
	}
	return baremetaloperator.Progress{Done: true}
}

// observe asks the BMC.
func (s *server) observe(ctx context.Context) (hardware.Observation, error) {
	host, err := s.host()
	if err != nil {
		return hardware.Observation{}, err
	}
	return s.site.installer.Observe(ctx, host)
}

// isPassing reports whether the error of a BMC ends by itself.
func isPassing(err error) bool {
	kind := hardware.KindOf(err)
	return kind == hardware.Busy || kind == hardware.SessionsExhausted
}

// Deploy implements baremetaloperator.Server.
func (s *server) Deploy(ctx context.Context, url string, begin func(context.Context) (baremetaloperator.Deployment, error)) (baremetaloperator.Progress, error) {
	name := string(baremetaloperator.Deploying) + " " + url
	if s.isInstalled(url) {
		return baremetaloperator.Progress{Done: true}, nil
	}
	if !s.isUnderWay(name) {
		d, err := begin(ctx)
		if err != nil {
			return baremetaloperator.Progress{}, err
		}
		s.site.store.setDrive(s.server.UUID(), hardware.ConfigDrive{UserData: d.UserData, NetworkData: d.NetworkData, MetaData: d.MetaData})
		s.beginDeploy(d)
	}
	if p := s.Next(baremetaloperator.Deploying); !p.Done {
		return p, nil
	}
	d := s.begun()
	_, progress := s.advance(ctx, name, func(host hardware.Host, attempt hardware.Attempt) error {
		return s.site.installer.Install(ctx, host, attempt, hardware.InstallSpec{Image: hardware.Image{URL: d.URL, Checksum: d.Checksum, Format: d.Format}})
	})
	if progress.Done {
		s.setInstalled(url, false)
	}
	return progress, nil
}

func (s *server) isInstalled(url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installed == url && s.work == nil
}

func (s *server) setInstalled(url string, isClean bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installed, s.isClean = url, isClean
}

func (s *server) begun() baremetaloperator.Deployment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deployment
}

// needsCleaning reports whether anything was begun on the disk since the last cleaning.
func (s *server) needsCleaning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.isClean
}

// Clean implements baremetaloperator.Server.
func (s *server) Clean(ctx context.Context, mode metal3.AutomatedCleaningMode) baremetaloperator.Progress {
	erase := hardware.EraseMetadata
	if mode == metal3.CleaningModeDisabled {
		erase = hardware.EraseNone
	}
	name := string(baremetaloperator.Cleaning) + " " + string(mode)
	if !s.needsCleaning() {
		return baremetaloperator.Progress{Done: true}
	}
	if node := s.server.State().Node; node != "" && !s.isUnderWay(name) {
		s.site.violate("host %s was to be cleaned while its server ran node %s", s.server.Name(), node)
	}
	if p := s.Next(baremetaloperator.Cleaning); !p.Done {
		return p
	}
	_, progress := s.advance(ctx, name, func(host hardware.Host, attempt hardware.Attempt) error {
		return s.site.installer.Erase(ctx, host, attempt, erase)
	})
	if progress.Done {
		s.setInstalled("", true)
		if erase == hardware.EraseMetadata {
			s.setOwner("")
		}
	}
	return progress
}

// beginDeploy notes a violation where the disk has what was installed for another Machine.
func (s *server) beginDeploy(d baremetaloperator.Deployment) {
	s.mu.Lock()
	s.deployment, s.installed, s.isClean = d, "", false
	s.mu.Unlock()
	var node struct {
		Name string `json:"local-hostname"`
	}
	if err := json.Unmarshal(d.MetaData, &node); err != nil {
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
	host, err := s.host()
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
