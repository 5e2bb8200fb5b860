package nodeprovider

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// endWarning is how long before the end of a certificate of spec.redfish.netboot.caBundle the condition Ready says so.
const endWarning = 14 * 24 * time.Hour

// beginning is the first line of a certificate in PEM.
const beginning = "-----BEGIN CERTIFICATE-----"

// caBundle returns the certificates of spec.redfish.netboot.caBundle.
func caBundle(provider *v1alpha1.NodeProvider) string {
	if provider.Spec.Redfish == nil {
		return ""
	}
	return provider.Spec.Redfish.Netboot.CABundle
}

// caBundleProblem returns why spec.redfish.netboot.caBundle cannot be used; nil: it can, or there is none. One certificate that cannot be read
// makes the bundle a problem. Without it: the readers of the bundle skip that one, and the image servers that it is for are not trusted while
// nothing says why.
func caBundleProblem(provider *v1alpha1.NodeProvider) *problem {
	bundle := caBundle(provider)
	if bundle == "" {
		return nil
	}
	const field, hint = "spec.redfish.netboot.caBundle: ", ": replace it by the certificate of the CA in PEM, complete from BEGIN to END"
	// Each part has one beginning, so that a certificate without its end does not hide behind the next one.
	parts := strings.Split(bundle, beginning)[1:]
	if len(parts) == 0 {
		return &problem{v1alpha1.ReasonCABundleInvalid, field + "expected certificates in PEM, seen none" + hint}
	}
	for i, part := range parts {
		if _, err := parseCertificate(beginning + part); err != nil {
			return &problem{v1alpha1.ReasonCABundleInvalid, fmt.Sprintf("%sexpected certificates in PEM, seen that certificate %d of %d cannot be read: %v%s", field, i+1, len(parts), err, hint)}
		}
	}
	return nil
}

// parseCertificate reads one certificate in PEM.
func parseCertificate(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return nil, fmt.Errorf("it is no PEM block, or has no end")
	case len(block.Headers) > 0:
		return nil, fmt.Errorf("its PEM block has headers")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("it is no X.509 certificate")
	}
	return certificate, nil
}

// caBundleEnd says which certificate of a readable bundle has ended or ends soon; empty: none. It is a warning, because while a CA is replaced
// a bundle has the old certificate beside the new one.
func caBundleEnd(provider *v1alpha1.NodeProvider, now time.Time) string {
	bundle := caBundle(provider)
	for i, part := range strings.Split(bundle, beginning) {
		if i == 0 {
			continue
		}
		certificate, err := parseCertificate(beginning + part)
		if err != nil || certificate.NotAfter.Sub(now) >= endWarning {
			continue
		}
		verb := "ends"
		if certificate.NotAfter.Before(now) {
			verb = "has ended"
		}
		return fmt.Sprintf("certificate %d of spec.redfish.netboot.caBundle (%s) %s at %s: replace it, or remove it if no image server needs it",
			i, v1alpha1.Truncate(certificate.Subject.String(), 256), verb, certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	return ""
}
