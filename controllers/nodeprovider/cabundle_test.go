package nodeprovider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newCA returns the certificate of a CA in PEM that ends after the time.
func newCA(t *testing.T, name string, left time.Duration) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: noon.Add(-1000 * time.Hour), NotAfter: noon.Add(left),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func providerWithBundle(bundle string) *v1alpha1.NodeProvider {
	return &v1alpha1.NodeProvider{Spec: v1alpha1.NodeProviderSpec{Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{CABundle: bundle}}}}
}

// TestACABundleOfWhichSomethingCanBeReadIsUsed: the versions before skipped a certificate that they could not read, so a stored bundle with one
// must not stop its NodeProvider after an upgrade.
func TestACABundleOfWhichSomethingCanBeReadIsUsed(t *testing.T) {
	one, two := newCA(t, "one", 10000*time.Hour), newCA(t, "two", 10000*time.Hour)
	lines := strings.SplitAfter(two, "\n")
	noBase64 := beginning + "\nnot base64\n-----END CERTIFICATE-----\n"
	const ready, partly, invalid = v1alpha1.ReasonReady, v1alpha1.ReasonCABundlePartlyInvalid, v1alpha1.ReasonCABundleInvalid
	for name, c := range map[string]struct {
		bundle, reason, says string
	}{
		"no bundle":                    {"", ready, ""},
		"two certificates":             {one + two, ready, ""},
		"with comments":                {"# CN=one\n" + one + "\n\n# CN=two\n" + two + "\n", ready, ""},
		"lines end as on Windows":      {strings.ReplaceAll(one+two, "\n", "\r\n"), ready, ""},
		"no PEM":                       {"a word", invalid, "seen none"},
		"no base64":                    {noBase64, invalid, "certificate 1 of 1"},
		"two of no base64":             {noBase64 + noBase64, invalid, "certificate 1 of 2"},
		"the second is no base64":      {one + noBase64, partly, "certificate 2 of 2"},
		"the second lacks its end":     {one + strings.Join(lines[:len(lines)-2], ""), partly, "certificate 2 of 2"},
		"the first lacks its end":      {strings.Join(lines[:len(lines)-2], "") + one, partly, "certificate 1 of 2"},
		"the second lacks a line":      {one + lines[0] + strings.Join(lines[2:], ""), partly, "certificate 2 of 2"},
		"the second is something else": {one + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("a request")})), partly, "no X.509 certificate"},
		"one is bad and one has ended": {noBase64 + newCA(t, "old", -time.Hour), partly, "certificate 2 of spec.redfish.netboot.caBundle (CN=old) has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			provider := providerWithBundle(c.bundle)
			report(provider, findProblem(observation{provider: provider, namespace: &corev1.Namespace{}}), noon)
			got := meta.FindStatusCondition(provider.Status.Conditions, v1alpha1.ConditionReady)
			if got.Reason != c.reason || (got.Status == metav1.ConditionTrue) != (c.reason != invalid) || !strings.Contains(got.Message, c.says) {
				t.Errorf("%+v", got)
			}
			// The agent reads something of what is Ready, and only of that.
			if pool := x509.NewCertPool(); c.bundle != "" && pool.AppendCertsFromPEM([]byte(c.bundle)) != (got.Status == metav1.ConditionTrue) {
				t.Error("the agent reads otherwise")
			}
		})
	}
	if got := caBundleProblem(&v1alpha1.NodeProvider{}); got != nil {
		t.Errorf("without redfish: %+v", got)
	}
}

func TestACertificateOfTheCABundleThatEndsIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		left time.Duration
		says string
	}{
		"long":  {10000 * time.Hour, ""},
		"soon":  {24 * time.Hour, "certificate 2 of spec.redfish.netboot.caBundle (CN=old) ends at 2026-11-21T12:00:00Z"},
		"ended": {-time.Hour, "certificate 2 of spec.redfish.netboot.caBundle (CN=old) has ended at 2026-11-20T11:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			provider := providerWithBundle(newCA(t, "new", 10000*time.Hour) + newCA(t, "old", c.left))
			report(provider, findProblem(observation{provider: provider, namespace: &corev1.Namespace{}}), noon)
			ready := meta.FindStatusCondition(provider.Status.Conditions, v1alpha1.ConditionReady)
			want := v1alpha1.ReasonReady
			if c.says != "" {
				want = v1alpha1.ReasonCABundleEnds
			}
			if ready.Status != metav1.ConditionTrue || ready.Reason != want || !strings.Contains(ready.Message, c.says) {
				t.Errorf("%+v", ready)
			}
		})
	}
}
