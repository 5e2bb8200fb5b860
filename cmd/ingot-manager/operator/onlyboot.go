package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/agentlogs"
	"github.com/ingot-dev/ingot/controllers/host/attemptlog"
	"github.com/ingot-dev/ingot/controllers/host/sessions"
	"github.com/ingot-dev/ingot/controllers/host/strangerbook"
)

// RunBoot runs the boot service alone until the context ends: no controller, no leader. An error is an *EndError, and is the last line of the log.
func RunBoot(ctx context.Context, s settings.Settings, cluster *rest.Config, version string) error {
	log := newLog(ctx, s.Log)
	redirectLogs(log)
	log.Info("Starting the boot service of ingot-manager", "version", version, "hostNamespaces", s.Boot.HostNamespaces)
	if err := runBoot(ctx, s, cluster, log); err != nil {
		log.Error("the boot service ends", "err", err)
		return &EndError{err}
	}
	log.Info("the boot service has stopped")
	return nil
}

func runBoot(ctx context.Context, s settings.Settings, cluster *rest.Config, log *slog.Logger) error {
	if err := s.ValidateBoot(); err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if err := preflight(cluster, scheme); err != nil {
		return err
	}
	// Every process answers, and none leads.
	s.LeaderElection.Enabled = false
	mgr, err := newManager(s, cluster, scheme, siteCache(s.Boot.HostNamespaces))
	if err != nil {
		return err
	}
	if err := addBoot(ctx, mgr, s, log); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the boot service: %w", err)
	}
	return nil
}

// siteCache limits what is read of hosts to those of the namespaces; none: all are read. The hosts of other sites are then as unknown as strangers, and the
// process needs no rights to them.
func siteCache(namespaces []string) cache.Options {
	if len(namespaces) == 0 {
		return cache.Options{}
	}
	site := cache.ByObject{Namespaces: map[string]cache.Config{}}
	for _, name := range namespaces {
		site.Namespaces[name] = cache.Config{}
	}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{&metal3.BareMetalHost{}: site, &v1alpha1.HostRecord{}: site}}
}

// addBoot adds the boot service and what belongs to it.
func addBoot(ctx context.Context, mgr *timedManager, s settings.Settings, log *slog.Logger) error {
	if err := sessions.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	// Without it: these kinds are first read for the first server that boots, which waits for that long after the service was said to be ready.
	for _, o := range []client.Object{&metal3.BareMetalHost{}, &v1alpha1.HostRecord{}, &v1alpha1.NodeProvider{}, &corev1.Namespace{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, o, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch what the boot service needs: %w", err)
		}
	}
	store := &sessions.Store{APIReader: mgr.GetAPIReader(), Client: mgr.GetClient(), Clock: mgr.clock}
	key := newBootKey(mgr, s)
	key.writer = nil // The manager makes the key.
	boot, err := newBootParts(mgr, s, store, key, newBootTLS(mgr, s, log), log)
	if err != nil {
		return err
	}
	return errors.Join(boot.addTo(mgr, s, log), addMetrics(mgr, s.Metrics, log), addHealth(mgr, s.Health.Address, boot.checks(), log))
}

// bootParts are the boot service and what belongs to it. A manager that serves no boots has the server for the URLs of boot images.
type bootParts struct {
	server  *bootServer
	network *provisioning
	logs    *agentlogs.Keeper
	book    *strangerbook.Book
}

func newBootParts(mgr *timedManager, s settings.Settings, store *sessions.Store, key *bootKey, tls bootTLS, log *slog.Logger) (p bootParts, err error) {
	bootLog := log.With("logger", "boot")
	p.logs = agentlogs.New(&attemptlog.Store{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader()}, mgr.clock.Now, bootLog)
	p.book = newStrangerBook(mgr, s, store, bootLog)
	if p.server, err = newBootServer(mgr, s, store, key, tls, p.logs, p.book, log); err != nil {
		return p, err
	}
	p.network, err = newProvisioning(mgr, s, store, p.book.Note, bootLog)
	return p, err
}

// addTo has the process serve boots.
func (p bootParts) addTo(mgr *timedManager, s settings.Settings, log *slog.Logger) error {
	err := addNamed(mgr, namedPart{"the boot service", p.server}, namedPart{"the provisioning network", p.network}, namedPart{"the agents' logs", p.logs}, namedPart{"the list of strangers", p.book})
	if err != nil {
		return err
	}
	return addSharedAddress(mgr, s, p.server, log)
}

// checks say whether the process is ready to serve boots.
func (p bootParts) checks() map[string]healthz.Checker {
	return map[string]healthz.Checker{"boot": p.server.checkReady, "network": p.network.checkReady}
}
