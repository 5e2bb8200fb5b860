package operator

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/host/bootcertificate"
	"github.com/ingot-dev/ingot/controllers/plan/bootca"
)

// bootTLS is the boot service's HTTPS. The zero value is none.
type bootTLS struct {
	// address is what is listened on, and port the part of it that servers are told.
	address, port string
	source        *bootcertificate.Source
}

// newBootTLS returns the boot service's HTTPS as the settings have it.
func newBootTLS(mgr ctrl.Manager, s settings.Settings, log *slog.Logger) bootTLS {
	_, port, err := net.SplitHostPort(s.Boot.TLS.Address)
	if err != nil {
		return bootTLS{} // the settings say "0"
	}
	return bootTLS{address: s.Boot.TLS.Address, port: port, source: &bootcertificate.Source{
		Reader: mgr.GetAPIReader(), Served: certificateSecret(s), Clock: time.Now, Log: log.With("logger", "boot"),
	}}
}

func certificateSecret(s settings.Settings) client.ObjectKey {
	return client.ObjectKey{Namespace: s.KeyNamespace(), Name: s.Boot.TLS.CertificateSecret}
}

// pins returns the pins for command lines.
func (b bootTLS) pins(ctx context.Context) ([]string, error) { return b.source.Pins(ctx) }

// listener returns the listener of HTTPS, of connections within the limits of bounded; nil where there is none.
func (b bootTLS) listener(ctx context.Context, bounded func(net.Listener) net.Listener) (net.Listener, error) {
	if b.source == nil {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", b.address)
	if err != nil {
		return nil, fmt.Errorf("boot service: %w: set boot.tls.address to a free address", err)
	}
	return tls.NewListener(bounded(listener), bootTLSConfig(b.source.GetCertificate)), nil
}

// bootTLSConfig is for agents and for firmware that boots by HTTPS, which may know TLS 1.2 alone, and no elliptic curves: OVMF 2022.11 offers DHE, which Go
// does not have, and the exchange of a key by RSA. The latter is used only with a client that offers nothing better. Who gets hold of the certificate's key
// within its eight days can then read what was recorded, a token that ended with its attempt.
func bootTLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	suites := []uint16{tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
	for _, suite := range tls.CipherSuites() {
		suites = append(suites, suite.ID)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, CipherSuites: suites, GetCertificate: certificate, NextProtos: []string{"http/1.1"}}
}

// addKeeper adds what issues the certificate to the manager.
func (b bootTLS) addKeeper(mgr ctrl.Manager, s settings.Settings, log *slog.Logger) error {
	if b.source == nil {
		return nil
	}
	keeper := &bootcertificate.Keeper{
		Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Authorities: client.ObjectKey{Namespace: s.Namespace, Name: s.Boot.TLS.AuthoritySecret}, Served: certificateSecret(s),
		Names: bootNames(mgr.GetCache(), s.Boot.URL), Clock: time.Now, Random: rand.Reader, Times: bootca.DefaultTimes(longestAttempt(s.Timeouts.Hosts)), Log: log.With("logger", "boot"),
	}
	if err := mgr.Add(keeper); err != nil {
		return fmt.Errorf("add the keeper of the boot service's certificate to the manager: %w", err)
	}
	return nil
}

// longestAttempt returns the longest time that an attempt may take.
func longestAttempt(t settings.HostTimeouts) time.Duration {
	return slices.Max([]time.Duration{t.Inspect.Duration, t.InspectAgent.Duration, t.Install.Duration, t.EraseMetadata.Duration, t.EraseFull.Duration})
}
