package ironic_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	username, password = "ingot", "ironic-password"
	// maxCalls is how many calls beside the list a node may cost from its registration until it is deployed.
	maxCalls = 12
)

// front is what stands before an Ironic: it terminates TLS, counts calls, and asks for a token of Keystone where it has one.
type front struct {
	*httptest.Server
	calls atomic.Int64
	token atomic.Pointer[string]
}

func newFront(t *testing.T, endpoint string) *front {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if f.token.Load() != nil {
			r.Out.SetBasicAuth(username, password)
		}
	}}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := f.token.Load(); token != nil && r.Header.Get("X-Auth-Token") != *token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet || r.URL.Path != "/v1/nodes" && r.URL.Path != "/v1/" {
			f.calls.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *front) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
}

// newKeystone stands for an identity service that knows one application credential while known is true, and gives the front a new token at each login.
func newKeystone(t *testing.T, f *front, id, secret string, known *atomic.Bool) string {
	t.Helper()
	var logins atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !known.Load() || !strings.Contains(string(body), `"id":"`+id+`"`) || !strings.Contains(string(body), `"secret":"`+secret+`"`) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		token := "token-" + time.Duration(logins.Add(1)).String()
		f.token.Store(&token)
		w.Header().Set("X-Subject-Token", token)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{"expires_at": "2099-01-01T00:00:00.000000Z", "catalog": []any{}}})
	}))
	t.Cleanup(service.Close)
	return service.URL + "/v3"
}

func TestIronicIsReachedAsTheSiteDemandsAndRejectsNothingForGood(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	running := server.Start(t, server.Options{Username: username, Password: password, MaxDeploys: 1})
	entrance := newFront(t, running.Endpoint)
	credentials := ironic.Credentials{Username: username, Password: "old"}
	options := ironic.Options{
		Endpoint: entrance.URL, CABundle: entrance.authority(), DeployInterface: "direct",
		Credentials: func(context.Context) (ironic.Credentials, error) { return credentials, nil },
	}
	f := newFixture(t, options)

	stranger := options
	stranger.CABundle = nil
	_, err := ironic.New(stranger).Observe(t.Context(), f.host)
	expectKind(t, err, hardware.Unreachable)
	_, err = f.installer.Observe(t.Context(), f.host)
	expectKind(t, err, hardware.Unauthorized)
	if answer, err := f.installer.Check(t.Context()); hardware.ReasonOf(err) != hardware.ReasonInstallerUnauthorized || !strings.Contains(err.Error(), "correct the Secret") {
		t.Errorf("seen %q, %v", answer, err)
	}
	credentials.Password = password
	if answer, err := ironic.New(options).Check(t.Context()); err != nil || !strings.Contains(answer, "Ironic answers at "+entrance.URL) || !strings.Contains(answer, "it shows no nodes to this login") {
		t.Errorf("seen %q, %v", answer, err)
	}
	agent := server.StartAgent(t, running.Endpoint, f.host.BootMAC, server.AgentOptions{Absent: true})
	f.serveImage()
	waiting := func(seen hardware.Observation) bool {
		return seen.Attempt != nil && seen.Attempt.Step == hardware.StepBooting
	}
	attempt := attemptOf(1)
	f.repeat(func() error { return f.install(attempt) }, waiting)

	other := newFixture(t, options)
	other.image = f.image
	server.StartAgent(t, running.Endpoint, other.host.BootMAC, server.AgentOptions{})
	rejected := false
	other.repeat(func() error {
		err := other.install(attempt)
		rejected = rejected || hardware.KindOf(err) == hardware.Busy && strings.Contains(err.Error(), "limit")
		return err
	}, func(seen hardware.Observation) bool {
		if seen.Attempt != nil && seen.Attempt.State != hardware.AttemptRunning {
			t.Fatalf("the attempt above the limit of Ironic: %+v", *seen.Attempt)
		}
		return rejected
	})

	running.Kill()
	_, err = ironic.New(options).Observe(t.Context(), f.host)
	expectKind(t, err, hardware.Unreachable)
	running.Run()
	f.restart()
	agent.Set(server.AgentOptions{})
	f.expectSucceeded(1, f.install)
	if calls := entrance.calls.Load(); calls > 2*maxCalls {
		t.Errorf("%d calls for two nodes beside the list, expected at most %d each", calls, maxCalls)
	}
	other.expectSucceeded(1, other.install)
	if answer, err := ironic.New(options).Check(t.Context()); err != nil || strings.Contains(answer, "no nodes") {
		t.Errorf("with two nodes: %q, %v", answer, err)
	}

	var known atomic.Bool
	known.Store(true)
	keystone := newKeystone(t, entrance, "application", "application-secret", &known)
	credentials = ironic.Credentials{KeystoneURL: keystone, ApplicationID: "application", ApplicationSecret: "wrong-secret"}
	_, err = f.installer.Observe(t.Context(), f.host)
	expectKind(t, err, hardware.Unauthorized)
	credentials.ApplicationSecret = "application-secret"
	f.expectPower(hardware.PowerOff)
	revoked := "another token"
	entrance.token.Store(&revoked)
	f.expectPower(hardware.PowerOn)

	// An application credential that ends: the library logs in again by itself, and Keystone refuses.
	known.Store(false)
	entrance.token.Store(&revoked)
	var ended error
	f.until("the end of the application credential is told", func() bool {
		_, ended = f.installer.Observe(t.Context(), f.host)
		return hardware.KindOf(ended) == hardware.Unauthorized
	})
	if hardware.ReasonOf(ended) != hardware.ReasonInstallerUnauthorized || !strings.Contains(ended.Error(), "make a new one") {
		t.Errorf("seen %v", ended)
	}
}

// serveImage gives the image an address at which Ironic finds something.
func (f *fixture) serveImage() {
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("image")) }))
	f.Cleanup(images.Close)
	f.image.URL = images.URL + "/a.raw"
}

// expectKind checks the kind of a failure, and that its text has no secret.
func expectKind(t *testing.T, err error, want hardware.Kind) {
	t.Helper()
	if hardware.KindOf(err) != want {
		t.Fatalf("expected %s, seen %v", want, err)
	}
	for _, secret := range []string{password, "wrong-secret", "application-secret", "bmc-password"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}
