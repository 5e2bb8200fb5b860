package agent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/ingot-dev/ingot/controllers/hardware/pin"
)

// TLSTransport is a transport that is no http.Transport and can have other TLS settings.
type TLSTransport interface {
	http.RoundTripper
	// WithTLS returns the transport with the TLS settings, and without a proxy.
	WithTLS(settings *tls.Config) http.RoundTripper
}

// clientOfPins returns the client for the boot service: one that trusts the pinned authorities alone, where there are pins. No proxy is asked then: a
// server that boots has none.
func clientOfPins(config Config) (*http.Client, error) {
	calls := *config.HTTP
	if len(config.Pins) == 0 {
		return &calls, nil
	}
	settings := pin.ClientConfig(config.Pins, config.Clock.Now)
	if other, can := calls.Transport.(TLSTransport); can {
		calls.Transport = other.WithTLS(settings)
		return &calls, nil
	}
	transport, err := transportOf(&calls)
	if err != nil {
		return nil, fmt.Errorf("the boot service's certificate cannot be checked: %w", err)
	}
	transport.Proxy, transport.TLSClientConfig = nil, settings
	calls.Transport = transport
	return &calls, nil
}

// transportOf returns a copy of the client's transport.
func transportOf(client *http.Client) (*http.Transport, error) {
	transport, ok := client.Transport.(*http.Transport)
	if client.Transport == nil {
		transport, ok = http.DefaultTransport.(*http.Transport)
	}
	if !ok {
		return nil, errors.New("the HTTP client has a transport of its own")
	}
	return transport.Clone(), nil
}

// trustBundle returns a client that trusts the certificates of the bundle beside those that the client trusts. The boot service is not asked
// with it. A bundle that cannot be used changes nothing: a download that needs it then fails with its certificate's error.
func trustBundle(client *http.Client, bundle string, log *slog.Logger) *http.Client {
	if bundle == "" {
		return client
	}
	transport, err := transportOf(client)
	if err != nil {
		log.Warn("the CA bundle is not used", "error", err)
		return client
	}
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	roots := transport.TLSClientConfig.RootCAs
	if roots == nil {
		if roots, err = x509.SystemCertPool(); err != nil {
			roots = x509.NewCertPool()
		}
	} else {
		roots = roots.Clone()
	}
	if !roots.AppendCertsFromPEM([]byte(bundle)) {
		log.Warn("the CA bundle of the boot service has no certificate")
	}
	transport.TLSClientConfig.RootCAs = roots
	trusting := *client
	trusting.Transport = transport
	return &trusting
}
