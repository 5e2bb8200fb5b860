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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
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
	client    client.Client
	store     *store
	bmcs      *redfish.Client
	installer *direct.Installer
	servers   map[types.NamespacedName]*server
	boot      *http.Server
	cancel    context.CancelFunc

	mu sync.Mutex
	// violations is what must not happen to a host, and did.
	violations []string

	// ended receives the errors with which the boot service and the operator end.
	ended chan error
}

// Start starts the site. It runs until Stop is called.
func Start(ctx context.Context, options Options) (*Site, error) {
	if options.Speed <= 0 {
		options.Speed = 1
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Site{options: options, store: newStore(options.Namespace, options.Rack.Servers()), servers: map[types.NamespacedName]*server{}, ended: make(chan error, 2)}
	for _, one := range options.Rack.Servers() {
		s.servers[types.NamespacedName{Namespace: options.Namespace, Name: one.Name()}] = &server{site: s, server: one}
	}
	s.bmcs = redfish.New(redfish.Options{})
	s.installer = direct.New(direct.Options{BMCs: s.bmcs, Store: s.store})
	manager, err := s.newOperator()
	if err != nil {
		return nil, err
	}
	if err := s.startBootService(ctx); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go func() { s.ended <- manager.Start(ctx) }()
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
	go func() { s.ended <- s.boot.Serve(listener) }()
	return nil
}

// newOperator returns a manager with the baremetal-operator.
func (s *Site) newOperator() (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), metal3.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	var err error
	if s.client, err = client.New(s.options.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("make a client of the baremetal-operator: %w", err)
	}
	manager, err := ctrl.NewManager(s.options.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.options.Namespace: {}}},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager of the baremetal-operator: %w", err)
	}
	operator := baremetaloperator.New(baremetaloperator.Options{Client: s.client, Server: s.server, Conditions: s.options.Conditions})
	isNameTaken := true // another site of the same process
	err = ctrl.NewControllerManagedBy(manager).For(&metal3.BareMetalHost{}).Named("baremetal-operator").
		WithOptions(controller.Options{MaxConcurrentReconciles: len(s.servers), SkipNameValidation: &isNameTaken}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			result, err := operator.Reconcile(ctx, request)
			if err != nil && ctx.Err() == nil {
				s.options.Log.Info("the baremetal-operator looks again", "host", request.Name, "err", err)
			}
			return s.scale(result), err
		}))
	if err != nil {
		return nil, fmt.Errorf("set up the baremetal-operator: %w", err)
	}
	return manager, nil
}

func (s *Site) server(key types.NamespacedName) baremetaloperator.Server {
	if one := s.servers[key]; one != nil {
		return one
	}
	return nil
}

// shortestWait keeps a fast site from looking at a host without a pause.
const shortestWait = 100 * time.Millisecond

// scale divides the time until the next look by the speed of the site.
func (s *Site) scale(result reconcile.Result) reconcile.Result {
	if result.RequeueAfter > shortestWait {
		result.RequeueAfter = max(shortestWait, time.Duration(float64(result.RequeueAfter)/s.options.Speed))
	}
	return result
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
	s.cancel()
	err := s.boot.Close()
	for range cap(s.ended) {
		if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(err, s.bmcs.Close(ctx))
}
