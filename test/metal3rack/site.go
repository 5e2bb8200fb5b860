package metal3rack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/rack"
)

// Options are what a Site needs. All fields but Speed, Conditions and Log are required.
type Options struct {
	// Config is a connection to the management cluster, which has Metal3's CRDs.
	Config *rest.Config
	// Rack has the servers, and has been started. Its BootURL leads to Address.
	Rack *rack.Rack
	// Namespace is that of the BareMetalHosts, which have the names of the servers.
	Namespace string
	// Address is where the boot service listens.
	Address string
	// Files holds the agent's kernel and ramdisk, vmlinuz and agent.cpio.zst.
	Files fs.FS
	// Speed divides the times after which the baremetal-operator looks again; 0: 1.
	Speed float64
	// Conditions is true for an operator that writes conditions. The CRD must have them.
	Conditions bool
	// Log receives what the operator cannot do; nil: nothing is logged.
	Log *slog.Logger
}

// Site is a running baremetal-operator with its installer.
type Site struct {
	options   Options
	scheme    *runtime.Scheme
	client    client.Client
	store     *store
	bmcs      *redfish.Client
	installer *direct.Installer
	servers   map[types.NamespacedName]*server
	boot      *http.Server
	// bootEnded receives the error with which the boot service ends.
	bootEnded chan error

	mu sync.Mutex
	// violations is what must not happen to a host, and did.
	violations []string
	// operator is the process of the baremetal-operator; nil: it is stopped.
	operator *process
}

// Start starts the site. It runs until Stop is called.
func Start(ctx context.Context, options Options) (*Site, error) {
	if options.Speed <= 0 {
		options.Speed = 1
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Site{options: options, store: newStore(options.Namespace, options.Rack.Servers()), servers: map[types.NamespacedName]*server{}, bootEnded: make(chan error, 1)}
	for _, one := range options.Rack.Servers() {
		s.servers[types.NamespacedName{Namespace: options.Namespace, Name: one.Name()}] = &server{site: s, server: one}
	}
	s.bmcs = redfish.New(redfish.Options{})
	s.installer = direct.New(direct.Options{BMCs: s.bmcs, Store: s.store})
	s.scheme = runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s.scheme), metal3.AddToScheme(s.scheme)); err != nil {
		return nil, err
	}
	var err error
	if s.client, err = client.New(options.Config, client.Options{Scheme: s.scheme}); err != nil {
		return nil, fmt.Errorf("make a client of the baremetal-operator: %w", err)
	}
	if err := s.startBootService(ctx); err != nil {
		return nil, err
	}
	if err := s.StartOperator(ctx); err != nil {
		return nil, errors.Join(err, s.boot.Close())
	}
	return s, nil
}

// startBootService starts the service that the installer boots servers by.
func (s *Site) startBootService(ctx context.Context) error {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("make the key of the boot service: %w", err)
	}
	service, err := netboot.New(netboot.Options{
		Store: s.store, Key: func(context.Context) ([]byte, error) { return key, nil }, BaseURL: "http://" + s.options.Address,
		Files: s.options.Files, Kernel: "vmlinuz", Initrd: "agent.cpio.zst", ProgressInterval: time.Second,
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("start the boot service: %w", err)
	}
	s.boot = &http.Server{Handler: service, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.bootEnded <- s.boot.Serve(listener) }()
	return nil
}

func (s *Site) violate(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.violations, text) {
		s.violations = append(s.violations, text)
	}
}

// Violations returns what must not happen to a host, and did: it was cleaned while its node ran, or installed for another Machine before the disk of the one
// before was erased. A nil Site has none.
func (s *Site) Violations() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// stopTimeout limits the logouts from the BMCs.
const stopTimeout = 10 * time.Second

// Stop stops the operator and the boot service. A nil Site is stopped.
func (s *Site) Stop() error {
	if s == nil {
		return nil
	}
	err := errors.Join(s.StopOperator(), s.boot.Close())
	if ended := <-s.bootEnded; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(err, s.bmcs.Close(ctx))
}
