package operator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers"
	"github.com/ingot-dev/ingot/controllers/grants"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/strangers"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/controllers/host/sessions"
	"github.com/ingot-dev/ingot/controllers/host/strangerbook"
	"github.com/ingot-dev/ingot/controllers/machine"
	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/readyourwrites"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/presentation"
)

// EndError is the error that ended the manager. It is in the log already.
type EndError struct{ Err error }

// Error returns the message of the cause.
func (e *EndError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EndError) Unwrap() error { return e.Err }

// Options are what the settings do not say.
type Options struct {
	// Version of the program, for the log.
	Version string
	// EmbedBoot has the manager serve boots in its own process.
	EmbedBoot bool
	// Resolve resolves revisions; nil: presentation.Resolve.
	Resolve presentation.Resolver
}

// Run runs the manager until the context ends. An error is an *EndError, and is the last line of the log.
func Run(ctx context.Context, s settings.Settings, cluster *rest.Config, o Options) error {
	if o.Resolve == nil {
		o.Resolve = presentation.Resolve
	}
	log := newLog(ctx, s.Log)
	redirectLogs(log)
	log.Info("Starting ingot-manager", "version", o.Version, "servesBoots", o.EmbedBoot)
	if err := runManager(ctx, s, cluster, log, o); err != nil {
		log.Error("ingot-manager ends", "err", err)
		return &EndError{err}
	}
	log.Info("ingot-manager has stopped")
	return nil
}

func runManager(ctx context.Context, s settings.Settings, cluster *rest.Config, log *slog.Logger, o Options) error {
	if o.EmbedBoot {
		if err := s.ValidateBoot(); err != nil {
			return err
		}
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if err := preflight(cluster, scheme); err != nil {
		return err
	}
	mgr, err := newManager(s, cluster, scheme, cache.Options{})
	if err != nil {
		return err
	}
	if err := announceNoElection(ctx, cluster, s, time.Now()); err != nil {
		log.Warn("Whoever asks for the manager may be told that none works", "err", err)
	}
	if err := addParts(ctx, mgr, s, log, o); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, metal3.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

// shutdownTimeout is less than the 30 seconds that Kubernetes gives a pod.
var shutdownTimeout = 15 * time.Second

// timedManager is a manager and the clock that goes by the answers of its API server.
type timedManager struct {
	ctrl.Manager
	clock *serverclock.Clock
}

func newManager(s settings.Settings, cluster *rest.Config, scheme *runtime.Scheme, cached cache.Options) (*timedManager, error) {
	cluster = rest.CopyConfig(cluster)
	cluster.UserAgent = "ingot-manager"
	cluster.QPS, cluster.Burst = 100, 200
	clock := serverclock.System()
	cluster.Wrap(clock.Wrap)
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cached,
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // addMetrics and addHealth serve within limits
		HealthProbeBindAddress:        "0",
		LeaderElection:                s.LeaderElection.Enabled,
		LeaderElectionID:              s.LeaderElection.Name,
		LeaderElectionNamespace:       s.Namespace,
		LeaderElectionLabels:          map[string]string{leaderlease.Label: leaderlease.LabelValue},
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &shutdownTimeout,
		Controller:                    config.Controller{MaxConcurrentReconciles: s.Concurrency},
		// Secrets are not cached, so that they are not in the manager's memory, and neither are ConfigMaps, which hold the logs of agents.
		NewClient: readyourwrites.NewClient,
		Client:    client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return &timedManager{mgr, clock}, nil
}

// addParts adds the adapters, the controllers and, where it is embedded, the boot service to the manager.
func addParts(ctx context.Context, mgr *timedManager, s settings.Settings, log *slog.Logger, o Options) error {
	if err := sessions.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	claims, desk := &machine.ClaimCache{}, &grants.Desk{Clock: mgr.clock}
	store := &sessions.Store{
		APIReader: mgr.GetAPIReader(), Client: mgr.GetClient(), Clock: mgr.clock,
		IsUnwritten: func(machine types.UID, number int64) bool {
			return claims.IsUnwritten(machine, number, mgr.clock.Now())
		},
	}
	key := newBootKey(mgr, s)
	tls := newBootTLS(mgr, s, log)
	boot, err := newBootParts(mgr, s, store, key, tls, log)
	if err != nil {
		return err
	}
	owner, err := sessionOwner(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	bmcs := redfish.New(redfish.Options{
		Timeout: s.BMC.Timeout.Duration, Owner: owner, ExclusiveAccount: s.BMC.ExclusiveAccount, Log: log.With("logger", "redfish"),
	})
	tenants := tenantaccess.New(tenantaccess.Options{
		Scheme: mgr.GetScheme(), Log: mgr.GetLogger().WithName("tenants"), PrivateNetworks: s.Tenants.PrivateNetworks, Timeout: s.Tenants.Timeout.Duration, QPS: s.Tenants.QPS, Burst: s.Tenants.Burst, Memory: s.Tenants.Memory.Value(),
		TotalMemory: tenantaccess.TotalMemory(debug.SetMemoryLimit(-1)), Clock: mgr.clock.Timers(), Now: mgr.clock.Now,
	})
	installers := newInstallers(mgr, s, direct.New(installerOptions(s, mgr.clock.Now, bmcs, store, boot.server, log)), log)
	err = controllers.Setup(mgr, controllers.Dependencies{
		Installers: installers.of, ConfigDrives: store,
		Tenants: tenants, Claims: claims, Grants: desk,
		HTTP:      &http.Client{Timeout: 30 * time.Second},
		CheckBoot: checkBoot(key, tls), CheckInstaller: installers.check,
		Clock: mgr.clock, Random: rand.Reader, Jitter: mathrand.Float64, Suffix: func() string { return utilrand.String(5) },
		HostTimeouts: s.HostTimeouts(), MachineTimeouts: machineTimeouts(s), Workers: s.Concurrency, Resolve: o.Resolve,
	})
	if err != nil {
		return err
	}
	parts := []namedPart{{"the BMC clients", bmcs}, {"the tenants' clients", tenants}, {"the clock", newClockKeeper(mgr, s, desk, log)}}
	if err := addNamed(mgr, parts...); err != nil {
		return err
	}
	if err := metrics.Registry.Register(&fleetCollector{reader: mgr.GetCache(), now: mgr.clock.Now, log: mgr.GetLogger().WithName("census")}); err != nil {
		return fmt.Errorf("register the census: %w", err)
	}
	checks := map[string]healthz.Checker{}
	if o.EmbedBoot {
		err, checks = boot.addTo(mgr, s, log), boot.checks()
	}
	return errors.Join(err, addWebhook(mgr, s, log), tls.addKeeper(mgr, s, log), addMetrics(mgr, s.Metrics, log), addHealth(mgr, s.Health.Address, checks, log))
}

// sessionOwner returns the mark of this installation's sessions at BMCs. The uid of kube-system stands for the management cluster: it stays through
// restarts of the manager and its pods, and another installation that reaches the same BMC has another one.
func sessionOwner(ctx context.Context, reader client.Reader) (string, error) {
	var system corev1.Namespace
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("read the identity of the management cluster: %w", err)
	}
	return "ingot-manager " + string(system.UID), nil
}

// clockLeaseSuffix makes the name of the Lease of the clock from that of the leader election. config/rbac grants it by this name.
const clockLeaseSuffix = "-clock"

func newClockKeeper(mgr *timedManager, s settings.Settings, desk *grants.Desk, log *slog.Logger) *serverclock.Keeper {
	return &serverclock.Keeper{
		Clock: mgr.clock, Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Lease: client.ObjectKey{Namespace: s.Namespace, Name: s.LeaderElection.Name + clockLeaseSuffix},
		Recorder: mgr.GetEventRecorder("ingot-clock"), Grants: desk, Log: log.With("logger", "clock"),
	}
}

func newBootKey(mgr ctrl.Manager, s settings.Settings) *bootKey {
	return &bootKey{
		reader: mgr.GetAPIReader(), writer: mgr.GetClient(), random: rand.Reader, clock: time.Now,
		name: client.ObjectKey{Namespace: s.KeyNamespace(), Name: s.Boot.KeySecret},
	}
}

// noBootURL is that of a manager whose settings have none: every NodeProvider names its boot service.
const noBootURL = "http://boot.invalid"

func newBootServer(mgr *timedManager, s settings.Settings, store netboot.Store, key *bootKey, tls bootTLS, logs *agentlogs.Keeper, book *strangerbook.Book, log *slog.Logger) (*bootServer, error) {
	amd64 := bootFiles(s.Boot)
	options := netboot.Options{
		Store: store, Clock: mgr.clock.Now, Key: key.get, BaseURL: cmp.Or(s.Boot.URL, noBootURL), HostSettings: bootSettingsOfHost(mgr.GetCache(), tls.port), Files: os.DirFS(s.Boot.Files), Kernel: amd64.Kernel, Initrd: amd64.Initrd,
		KernelArguments: s.Boot.KernelArguments, Log: log.With("logger", "boot"), ProgressInterval: s.Boot.ProgressInterval.Duration,
		Timeouts: s.InstallerTimeouts(), Count: sessions.CountBootEvent, Logs: logs, Media: amd64.Media, Program: amd64.Program, ARM64: bootFilesARM64(s.Boot),
		NoteStranger: func(mac, address string) {
			book.Note(strangers.Sighting{MAC: mac, Asked: strangers.AskedBootDocument, From: address})
		},
	}
	if tls.source != nil {
		options.Pins = tls.pins
	}
	service, err := netboot.New(options)
	if err != nil {
		return nil, fmt.Errorf("boot service: %w", err)
	}
	return &bootServer{
		service: service, tls: tls, hasImages: options.Media != nil || options.ARM64.Media != nil,
		address: s.Boot.Address, handler: withPrograms(service, s.Boot.Network.Programs), log: log.With("logger", "boot"), files: os.DirFS(s.Boot.Files), requiredFiles: []string{s.Boot.Kernel, s.Boot.Initrd},
	}, nil
}

// installerOptions returns the options of the installer of servers with Redfish BMCs.
func installerOptions(s settings.Settings, clock func() time.Time, bmcs hardware.BMCOpener, store netboot.Store, boot *bootServer, log *slog.Logger) direct.Options {
	options := direct.Options{
		BMCs: bmcs, Store: store, Clock: clock, Timeouts: s.InstallerTimeouts(), Log: log.With("logger", "installer"),
	}
	if boot.hasImages {
		options.MediaURLs, options.ProgramURLs = boot.service.MediaURLs, boot.service.ProgramURLs
	}
	if boot.tls.source != nil {
		options.BootAuthorities = boot.tls.source.Authorities
	}
	return options
}

func newStrangerBook(mgr ctrl.Manager, s settings.Settings, store *sessions.Store, log *slog.Logger) *strangerbook.Book {
	return &strangerbook.Book{APIReader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Namespace: s.Namespace, Clock: time.Now, Log: log, IsKnown: func(ctx context.Context, mac string) bool {
		_, found, err := store.KnownByMAC(ctx, mac)
		return err == nil && found
	}}
}

func machineTimeouts(s settings.Settings) lifecycle.Timeouts {
	t := lifecycle.DefaultTimeouts()
	t.Claiming, t.Provisioning, t.Joining = s.Timeouts.Claiming.Duration, s.Timeouts.Provisioning.Duration, s.Timeouts.Joining.Duration
	t.Releasing, t.Draining = s.Timeouts.Releasing.Duration, s.Timeouts.Drain.Duration
	return t
}

// namedPart is a part of the process, with its name for errors.
type namedPart struct {
	name string
	manager.Runnable
}

func addNamed(mgr ctrl.Manager, parts ...namedPart) error {
	for _, part := range parts {
		if err := mgr.Add(part.Runnable); err != nil {
			return fmt.Errorf("add %s: %w", part.name, err)
		}
	}
	return nil
}
