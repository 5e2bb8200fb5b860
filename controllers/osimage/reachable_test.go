package osimage

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestWhatAnswersWronglyIsToldFromWhatTheManagerCannotReach(t *testing.T) {
	site, f := newSite(t), newFixture()
	gone := httptest.NewServer(nil)
	gone.Close()
	private := httptest.NewTLSServer(site.Config.Handler)
	defer private.Close()
	metadata := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/debian.raw", http.StatusFound))
	defer metadata.Close()
	for _, c := range []struct {
		name, url     string
		ready, status metav1.ConditionStatus
		reason        string
		pause         time.Duration
	}{
		{"the-file", site.URL + "/debian.raw", metav1.ConditionTrue, metav1.ConditionTrue, v1alpha1.ReasonImageAnswers, 10 * time.Minute},
		{"another-path", site.URL + "/nothing", metav1.ConditionFalse, metav1.ConditionFalse, v1alpha1.ReasonImageUnreachable, time.Minute},
		{"no-server", gone.URL + "/debian.raw", metav1.ConditionTrue, metav1.ConditionUnknown, v1alpha1.ReasonImageUnconfirmed, time.Minute},
		{"unknown-ca", private.URL + "/debian.raw", metav1.ConditionTrue, metav1.ConditionUnknown, v1alpha1.ReasonImageCertificateUntrusted, time.Minute},
		{"another-name", strings.Replace(private.URL, "127.0.0.1", "localhost", 1) + "/debian.raw", metav1.ConditionFalse, metav1.ConditionFalse, v1alpha1.ReasonImageCertificateInvalid, time.Minute},
		{"redirect-to-metadata", metadata.URL + "/debian.raw", metav1.ConditionFalse, metav1.ConditionFalse, v1alpha1.ReasonImageUnreachable, time.Minute},
	} {
		stored, ready, pause := f.reconcile(t, newImage(t, c.name, c.url, "sha256:"+sha256Hex))
		got := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionImageReachable)
		if got == nil || got.Status != c.status || got.Reason != c.reason || ready.Status != c.ready || pause < c.pause || pause > c.pause*11/10 {
			t.Errorf("%s: %+v, Ready %s, again after %s", c.name, got, ready.Status, pause)
		}
	}
}

func TestAnImageThatChangesItsSizeIsNoticed(t *testing.T) {
	size, f := 4096, newFixture()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.ServeContent(w, q, "", time.Time{}, strings.NewReader(strings.Repeat("x", size)))
	}))
	defer server.Close()
	image := newImage(t, "resized", server.URL+"/debian.raw", "sha256:"+sha256Hex)
	f.reconcile(t, image)
	for _, c := range []struct {
		size   int
		reason string
	}{{5000, v1alpha1.ReasonImageSizeDiffers}, {5000, v1alpha1.ReasonImageSizeDiffers}, {4096, v1alpha1.ReasonReady}} {
		size = c.size
		f.clock.SetTime(f.clock.Now().Add(11 * time.Minute))
		if _, ready, _ := f.reconcile(t, image); ready.Reason != c.reason {
			t.Errorf("%d bytes: %+v", c.size, ready)
		}
	}
}

func TestACertificateThatEndsSoonIsSaid(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for left, says := range map[time.Duration]bool{24 * time.Hour: true, 365 * 24 * time.Hour: false} {
		if _, _, message := reachability(observation{certificateEnds: now.Add(left)}, now); strings.Contains(message, "renew it") != says {
			t.Errorf("%s: %s", left, message)
		}
	}
}

func TestAKeptImageIsCheckedAsBefore(t *testing.T) {
	isAway, f := true, newFixture()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if isAway {
			http.NotFound(w, q)
			return
		}
		http.ServeContent(w, q, "", time.Time{}, strings.NewReader("x"))
	}))
	defer site.Close()
	image := newImage(t, "kept", site.URL+"/debian.raw", "sha256:"+sha256Hex)
	image.Finalizers = []string{v1alpha1.InUseFinalizer}
	if err := server.Client.Update(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	f.reconcile(t, image)
	if err := server.Client.Delete(t.Context(), image.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	// The controller inuse says why it is kept.
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(image), image); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&image.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInUse})
	if err := server.Client.Status().Update(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	isAway = false
	f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
	stored, ready, pause := f.reconcile(t, image)
	if !meta.IsStatusConditionTrue(stored.Status.Conditions, v1alpha1.ConditionImageReachable) || ready.Reason != v1alpha1.ReasonInUse || pause <= 0 {
		t.Errorf("%+v, again after %s", stored.Status.Conditions, pause)
	}
	stored.Finalizers = nil
	if err := server.Client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
}

func TestTheCABundleOfANodeProviderIsTrusted(t *testing.T) {
	site, f := newSite(t), newFixture()
	private := httptest.NewTLSServer(site.Config.Handler)
	defer private.Close()
	image := newImage(t, "private-ca", private.URL+"/debian.raw", "sha256:"+sha256Hex)
	if _, ready, _ := f.reconcile(t, image); ready.Status != metav1.ConditionTrue {
		t.Errorf("what the installer's image trusts is not known, and the image is held: %+v", ready)
	}
	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: private.Certificate().Raw}))
	provider := &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: "private"}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: "metal", Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.0.0.2", CABundle: "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----"}},
	}}
	if err := f.Client.Create(t.Context(), provider.DeepCopy()); err == nil || !strings.Contains(err.Error(), "no private key") {
		t.Errorf("a private key was accepted: %v", err)
	}
	provider.Spec.Redfish.Netboot.CABundle = bundle
	server.Create(t, provider)
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), provider) })
	f.clock.SetTime(f.clock.Now().Add(11 * time.Minute))
	stored, ready, _ := f.reconcile(t, image)
	if c := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionImageReachable); c.Reason != v1alpha1.ReasonImageAnswers || ready.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	// httptest's servers have one certificate, so this one is trusted by the bundle as well.
	to := newRedirect(t, strings.Replace(site.URL, "127.0.0.1", "localhost", 1))
	stored, _, _ = f.reconcile(t, newImage(t, "private-ca-redirect", to.URL+"/debian.raw", "sha256:"+sha256Hex))
	if c := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionImageReachable); c.Reason != v1alpha1.ReasonImageUnreachable || !strings.Contains(c.Message, "redirects to an address") {
		t.Errorf("a redirect to a name of this machine, with a CA bundle: %+v", c)
	}
}

// newRedirect returns a server with TLS that redirects each request to the same path of another server.
func newRedirect(t *testing.T, target string) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target+r.URL.Path, http.StatusFound) }))
	t.Cleanup(s.Close)
	return s
}

func TestARedirectToHTTPIsFollowedForAnImageAndNotForItsChecksums(t *testing.T) {
	site, f := newSite(t), newFixture()
	secure := newRedirect(t, site.URL)
	f.HTTP = secure.Client()
	stored, ready, _ := f.reconcile(t, newImage(t, "to-http", secure.URL+"/debian.raw", "sha256:"+sha256Hex))
	if got := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionImageReachable); got == nil || got.Status != metav1.ConditionTrue || ready.Status != metav1.ConditionTrue {
		t.Errorf("the image: %+v, Ready %+v", got, ready)
	}
	stored, ready, _ = f.reconcile(t, newImage(t, "sums-to-http", site.URL+"/debian.raw", secure.URL+"/SHA256SUMS"))
	if stored.Status.Checksum != "" || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "spec.checksum") {
		t.Errorf("the checksum file: %q, Ready %+v", stored.Status.Checksum, ready)
	}
}

func TestARedirectToANameOfThisMachineIsNotFollowed(t *testing.T) {
	site, f := newSite(t), newFixture()
	// Only the connection shows where the name leads.
	named := strings.Replace(site.URL, "127.0.0.1", "localhost", 1)
	from := newRedirect(t, named)
	f.HTTP = from.Client()
	stored, _, _ := f.reconcile(t, newImage(t, "to-a-name", from.URL+"/debian.raw", "sha256:"+sha256Hex))
	got := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionImageReachable)
	if got == nil || got.Reason != v1alpha1.ReasonImageUnreachable || !strings.Contains(got.Message, "redirects to an address") {
		t.Errorf("%+v", got)
	}
	for address, isRefused := range map[string]bool{"169.254.169.254:80": true, "[::ffff:169.254.169.254]:80": true, "[fe80::1%eth0]:80": true, "[fd00:ec2::254]:80": true, "0.0.0.0:80": true, "10.0.0.5:443": false, "[2001:db8::1]:443": false} {
		if err := refuseLocalAddress("tcp", address, nil); (err != nil) != isRefused {
			t.Errorf("%s: %v", address, err)
		}
	}
}
