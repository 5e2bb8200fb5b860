package nodeprovider

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/input"
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

// caBundleHint is what to do about a certificate that cannot be read.
const caBundleHint = ": replace it by the certificate of the CA in PEM, complete from BEGIN to END"

// caBundleProblem returns why spec.redfish.netboot.caBundle cannot be used; nil: it can, or there is none. It can be used when its readers, which
// skip what they cannot read, find one certificate. Without this: 1. a bundle has a good certificate and one that no reader needs. 2. The manager
// is upgraded. 3. The NodeProvider and all its NodeTypes are not ready, and no server is claimed although every image can be downloaded.
func caBundleProblem(provider *v1alpha1.NodeProvider) *problem {
	bundle := caBundle(provider)
	if bundle == "" || x509.NewCertPool().AppendCertsFromPEM([]byte(bundle)) {
		return nil
	}
	seen := badCertificate(bundle)
	if seen == "" {
		seen = "none"
	}
	return &problem{v1alpha1.ReasonCABundleInvalid, "spec.redfish.netboot.caBundle: expected certificates in PEM, seen " + seen + caBundleHint}
}

// badCertificate says which is the first certificate of a bundle that cannot be read; empty: none.
func badCertificate(bundle string) string {
	parts := splitBundle(bundle)
	for i, part := range parts {
		if _, err := parseCertificate(part); err != nil {
			return fmt.Sprintf("that certificate %d of %d cannot be read: %v", i+1, len(parts), err)
		}
	}
	return ""
}

// splitBundle returns the certificates of a bundle. Each has one beginning, so that one without its end does not hide behind the next.
func splitBundle(bundle string) []string {
	parts := strings.Split(bundle, beginning)[1:]
	for i := range parts {
		parts[i] = beginning + parts[i]
	}
	return parts
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

// caBundleWarning returns the reason and the message of a NodeProvider that is Ready and whose CA bundle needs a look; empty: it needs none. The
// image servers of a certificate that cannot be read are not trusted, and without the warning nothing says why.
func caBundleWarning(provider *v1alpha1.NodeProvider, now time.Time) (reason, message string) {
	end := caBundleEnd(provider, now)
	bad := badCertificate(caBundle(provider))
	switch {
	case bad == "" && end == "":
		return "", ""
	case bad == "":
		return v1alpha1.ReasonCABundleEnds, end
	}
	message = "spec.redfish.netboot.caBundle: seen " + bad + ", so it is left out" + caBundleHint + ", or remove it if no image server needs it"
	if end != "" {
		message += "; " + end
	}
	return v1alpha1.ReasonCABundlePartlyInvalid, message
}

// caBundleEnd says which certificate that can be read has ended or ends soon; empty: none. It is a warning, because while a CA is replaced
// a bundle has the old certificate beside the new one.
func caBundleEnd(provider *v1alpha1.NodeProvider, now time.Time) string {
	for i, part := range splitBundle(caBundle(provider)) {
		certificate, err := parseCertificate(part)
		if err != nil || certificate.NotAfter.Sub(now) >= endWarning {
			continue
		}
		verb := "ends"
		if certificate.NotAfter.Before(now) {
			verb = "has ended"
		}
		return fmt.Sprintf("certificate %d of spec.redfish.netboot.caBundle (%s) %s at %s: replace it, or remove it if no image server needs it",
			i+1, input.Line(certificate.Subject.String(), 256), verb, certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	return ""
}
