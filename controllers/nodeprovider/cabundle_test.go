package nodeprovider

import (
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestACABundleWithoutACertificateIsAProblem(t *testing.T) {
	provider := &v1alpha1.NodeProvider{Spec: v1alpha1.NodeProviderSpec{Redfish: &v1alpha1.RedfishProvider{}}}
	if got := caBundleProblem(provider); got != nil {
		t.Errorf("no bundle: %+v", got)
	}
	provider.Spec.Redfish.Netboot.CABundle = "-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n"
	if got := caBundleProblem(provider); got == nil || got.reason != v1alpha1.ReasonCABundleInvalid {
		t.Errorf("a bundle that cannot be read: %+v", got)
	}
}
