package admission

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// PathNodeType is where API servers ask about NodeTypes: the path in config/webhook.
const PathNodeType = "/validate-ingot-dev-v1alpha1-nodetype"

// Setup serves the webhook at address, HOST:PORT or :PORT, in every replica of the manager, with the certificate that
// certificate gives to each connection.
func Setup(mgr ctrl.Manager, address string, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("the webhook's address: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("the webhook's address %s: the port must be a number", address)
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion, c.GetCertificate = tls.VersionTLS12, certificate
	}}})
	server.Register(PathNodeType, &admission.Webhook{Handler: &NodeTypes{
		Cache: mgr.GetClient(), Direct: mgr.GetAPIReader(), Decoder: admission.NewDecoder(mgr.GetScheme()),
	}})
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("add the webhook to the manager: %w", err)
	}
	return nil
}
