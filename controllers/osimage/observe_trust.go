package osimage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

//+kubebuilder:rbac:groups=ingot.dev,resources=nodeproviders,verbs=get;list;watch

// client returns the client for image servers. It trusts the CA bundles of the NodeProviders beside the roots of the client that was given: any
// of them may install the image, and each gives its bundle to its agents.
func (r *Reconciler) client(ctx context.Context) http.Client {
	client := *r.HTTP
	var providers v1alpha1.NodeProviderList
	if err := r.Client.List(ctx, &providers); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the CA bundles of NodeProviders are not known, and an image server may count as untrusted")
		return client
	}
	var bundles []byte
	for _, p := range providers.Items {
		if p.Spec.Redfish != nil {
			bundles = append(append(bundles, p.Spec.Redfish.Netboot.CABundle...), '\n')
		}
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if given, isTransport := client.Transport.(*http.Transport); isTransport {
		transport, ok = given, true
	} else if client.Transport != nil {
		ok = false
	}
	if !ok {
		return client
	}
	roots := rootsOf(transport)
	if !roots.AppendCertsFromPEM(bundles) {
		return client
	}
	transport = transport.Clone()
	// The transport is of one request.
	transport.DisableKeepAlives = true
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	transport.TLSClientConfig.RootCAs = roots
	client.Transport = transport
	return client
}

// rootsOf returns a copy of the roots that the transport trusts.
func rootsOf(transport *http.Transport) *x509.CertPool {
	if transport.TLSClientConfig != nil && transport.TLSClientConfig.RootCAs != nil {
		return transport.TLSClientConfig.RootCAs.Clone()
	}
	if roots, err := x509.SystemCertPool(); err == nil {
		return roots
	}
	return x509.NewCertPool()
}
