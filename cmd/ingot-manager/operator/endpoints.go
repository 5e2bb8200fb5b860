package operator

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot/bounded"
)

// addEndpoint serves the handler at an address, within limits, by TLS where there is a configuration of it. name is that of the setting of the address.
func addEndpoint(mgr ctrl.Manager, name, address string, config *tls.Config, handler http.Handler, log *slog.Logger) error {
	if address == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("%w: set %s to a free address", err, name)
	}
	listener = bounded.New(listener, bounded.OfControlPlane(), time.Now, log)
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	grace := shutdownGrace
	if err := mgr.Add(&manager.Server{Name: name, Server: bounded.NewServer(handler, log), Listener: listener, ShutdownTimeout: &grace}); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	return nil
}

// addMetrics serves the metrics, to readers that the API server lets read them.
func addMetrics(mgr ctrl.Manager, s settings.Metrics, log *slog.Logger) error {
	if s.Address == "0" {
		return nil
	}
	mux := http.NewServeMux()
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	if !s.Secure {
		mux.Handle("/metrics", handler)
		return addEndpoint(mgr, "metrics.address", s.Address, nil, mux, log)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if handler, err = filter(mgr.GetLogger().WithName("metrics"), handler); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	mux.Handle("/metrics", handler)
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return fmt.Errorf("make the certificate of metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("make the certificate of metrics: %w", err)
	}
	return addEndpoint(mgr, "metrics.address", s.Address, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}, mux, log)
}

// addHealth serves /healthz, which says that the process answers, and /readyz with the checks and that of the cache.
func addHealth(mgr ctrl.Manager, address string, checks map[string]healthz.Checker, log *slog.Logger) error {
	ready := map[string]healthz.Checker{"cache": func(r *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(r.Context()) {
			return fmt.Errorf("the cache has not synced")
		}
		return nil
	}}
	for name, check := range checks {
		ready[name] = check
	}
	mux := http.NewServeMux()
	for path, set := range map[string]map[string]healthz.Checker{"/healthz": {"ping": healthz.Ping}, "/readyz": ready} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: set})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return addEndpoint(mgr, "health.address", address, nil, mux, log)
}
