package agent

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
)

// trustBundle returns a client that trusts the certificates of the bundle beside those that the client trusts. The boot service is not asked
// with it. A bundle that cannot be used changes nothing: a download that needs it then fails with its certificate's error.
func trustBundle(client *http.Client, bundle string, log *slog.Logger) *http.Client {
	if bundle == "" {
		return client
	}
	transport, ok := client.Transport.(*http.Transport)
	if client.Transport == nil {
		transport, ok = http.DefaultTransport.(*http.Transport)
	}
	if !ok {
		log.Warn("the CA bundle is not used: the HTTP client has a transport of its own")
		return client
	}
	transport = transport.Clone()
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	roots := transport.TLSClientConfig.RootCAs
	if roots == nil {
		var err error
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
