package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/admission/certificate"
	"github.com/ingot-dev/ingot/test/management"
)

func TestOnlyTheSpecsOfNodeTypesWaitForAManager(t *testing.T) {
	nonsense := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("nonsense")) }))
	t.Cleanup(nonsense.Close)
	there := nodeType("there", "hall-4", "debian-4", nil)
	there.Finalizers = []string{"example.com/keep"}
	create(t, there, provider("hall-4", ""))
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: nonsense.Certificate().Raw})
	create(t, configuration(t, nonsense.URL+PathNodeType, bundle))
	blocked := func() bool {
		err := server.Client.Create(t.Context(), nodeType("new", "hall-4", "debian-4", nil), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "failed calling webhook")
	}
	management.Eventually(t, "the API server asks", blocked)
	for _, outage := range []string{"answers nonsense", "is down"} {
		if outage == "is down" {
			nonsense.Close()
		}
		if !blocked() {
			t.Errorf("while the manager %s, a NodeType is made", outage)
		}
		spec := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"displayName":"`+outage+`"}}`))
		if err := server.Client.Patch(t.Context(), there.DeepCopy(), spec); err == nil {
			t.Errorf("while the manager %s, a spec is changed", outage)
		}
		label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"outage":"`+strings.ReplaceAll(outage, " ", "-")+`"}}}`))
		if err := server.Client.Patch(t.Context(), there, label); err != nil {
			t.Errorf("while the manager %s, a label: %v", outage, err)
		}
		status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"targetRevision":"there-1"}}`))
		if err := server.Client.Status().Patch(t.Context(), there.DeepCopy(), status); err != nil {
			t.Errorf("while the manager %s, a status: %v", outage, err)
		}
		another := image("debian-4")
		if err := server.Client.Create(t.Context(), another, client.DryRunAll); err != nil {
			t.Errorf("while the manager %s, an OSImage: %v", outage, err)
		}
	}
	if err := server.Client.Delete(t.Context(), there); err != nil {
		t.Errorf("the deletion: %v", err)
	}
	let := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := server.Client.Patch(t.Context(), there, let); err != nil {
		t.Errorf("the finalizer: %v", err)
	}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(there), &v1alpha1.NodeType{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// asking sends requests until it is stopped, and counts those that failed.
func asking(t *testing.T) (stop func() (asked int, failed []string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var n int
	var failures []string
	wait.Go(func() {
		for ctx.Err() == nil {
			err := server.Client.Create(ctx, nodeType("asked", "none", "none", nil), client.DryRunAll)
			if ctx.Err() != nil {
				return
			}
			if n++; err != nil {
				failures = append(failures, err.Error())
			}
		}
	})
	return func() (int, []string) {
		cancel()
		wait.Wait()
		return n, failures
	}
}

// handshake connects as an API server does that asks for the first time, and gives the certificate that is served.
func handshake(t *testing.T, k *certificate.Rotator) []byte {
	t.Helper()
	var c admissionv1.ValidatingWebhookConfiguration
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: k.Configuration}, &c); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.Webhooks[0].ClientConfig.CABundle)
	address := strings.TrimSuffix(strings.TrimPrefix(*c.Webhooks[0].ClientConfig.URL, "https://"), PathNodeType)
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots}}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("whom API servers trust is not who serves: %v", err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
}

// asksByNow returns when the API server goes by the configuration as it is now: it does not ask about a name any more that is
// written into it here. The time that a renewal gives it passes in an instant.
func asksByNow(t *testing.T, k *certificate.Rotator, name string) {
	t.Helper()
	var c admissionv1.ValidatingWebhookConfiguration
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: k.Configuration}, &c); err != nil {
		t.Fatal(err)
	}
	before := c.DeepCopy()
	c.Webhooks[0].MatchConditions = append(c.Webhooks[0].MatchConditions, admissionv1.MatchCondition{Name: name, Expression: "object.metadata.name != '" + name + "'"})
	if err := server.Client.Patch(t.Context(), &c, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the API server goes by the new configuration", func() bool { return len(warned(t, nodeType(name, "none", "none", nil))) == 0 })
}

func TestTheCertificateIsRenewedWhileRequestsGoOn(t *testing.T) {
	k, now := answering(t)
	served := [][]byte{handshake(t, k)}
	stop := asking(t)
	for round := range 3 {
		now.advance(times.Renew)
		if done := settle(t, k); !slices.Equal(done, []certificate.Action{certificate.Prepare, certificate.Inject}) {
			t.Fatalf("when it is time: %v", done)
		}
		if !bytes.Equal(handshake(t, k), served[len(served)-1]) {
			t.Error("the next one is served before API servers can know it")
		}
		asksByNow(t, k, fmt.Sprintf("round-%d", round))
		now.advance(times.Spread)
		if done := settle(t, k); !slices.Equal(done, []certificate.Action{certificate.Promote}) {
			t.Fatalf("when API servers have seen it: %v", done)
		}
		// The process itself has not been told; it looks again by itself.
		now.advance(time.Minute)
		served = append(served, handshake(t, k))
		if bytes.Equal(served[len(served)-1], served[len(served)-2]) {
			t.Error("the next one is not served")
		}
		management.Eventually(t, "the API server asks whom it trusts now", func() bool { return len(warned(t, nodeType("probe", "none", "none", nil))) > 0 })
	}
	asked, failed := stop()
	if asked == 0 || len(failed) > 0 {
		t.Errorf("of %d requests %d failed, the first: %q", asked, len(failed), append(failed, "")[0])
	}
}

func TestTwoManagersShareOneSecret(t *testing.T) {
	first, now := answering(t)
	second := keeper(first.Secret, now)
	for round, disturb := range []func(){
		func() { now.advance(times.Renew) },
		func() { now.advance(times.Spread) },
		func() {
			if err := server.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: secretOf(t, first).ObjectMeta}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		disturb()
		var wait sync.WaitGroup
		for _, k := range []*certificate.Rotator{first, second} {
			wait.Go(func() {
				for range 20 {
					if _, err := k.Step(t.Context()); err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
						t.Errorf("round %d: %v", round, err)
					}
				}
			})
		}
		wait.Wait()
		for _, k := range []*certificate.Rotator{first, second} {
			if done := settle(t, k); len(done) > 0 {
				t.Errorf("round %d: there is still something to do: %v", round, done)
			}
		}
		now.advance(time.Minute)
		other := &certificate.Source{Reader: server.Client, Secret: first.Secret, Clock: now.Now, Log: logr.Discard()}
		serves(t, other, handshake(t, first))
	}
}

func TestTheLastCertificateIsServedWhileTheAPIServerIsAway(t *testing.T) {
	k, now := answering(t)
	expected := handshake(t, k)
	source := &certificate.Source{Reader: server.Client, Secret: k.Secret, Clock: now.Now, Log: logr.Discard()}
	serves(t, source, expected)
	away := rest.CopyConfig(server.Config)
	away.Host = "https://" + freeAddress(t)
	nobody, err := client.New(away, client.Options{Scheme: server.Scheme, Mapper: server.Client.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	source.Reader = nobody
	now.advance(time.Hour)
	serves(t, source, expected)
	fresh := &certificate.Source{Reader: nobody, Secret: k.Secret, Clock: now.Now, Log: logr.Discard()}
	if _, err := connect(t, fresh); err == nil {
		t.Error("a process that has never read one serves one")
	}
}

// serves checks that a replica serves that certificate.
func serves(t *testing.T, source *certificate.Source, raw []byte) {
	t.Helper()
	if got, err := connect(t, source); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("another certificate is served, or none: %v", err)
	}
}

// connect gives the certificate that a replica serves.
func connect(t *testing.T, source *certificate.Source) ([]byte, error) {
	t.Helper()
	listener := httptest.NewUnstartedServer(http.NotFoundHandler())
	listener.TLS = &tls.Config{GetCertificate: source.GetCertificate}
	listener.Config.ErrorLog = log.New(io.Discard, "", 0)
	// Not StartTLS, which would add a certificate of its own.
	plain := listener.Listener
	listener.Listener = tls.NewListener(plain, listener.TLS)
	listener.Start()
	defer listener.Close()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, ServerName: "webhook"}}).DialContext(t.Context(), "tcp", plain.Addr().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw, nil
}
