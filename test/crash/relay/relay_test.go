package relay

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// upstream remembers what reached it.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	took []string
}

func newUpstream(t *testing.T, answer http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.took = append(u.took, r.Method+" "+r.URL.Path)
		u.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) seen() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.took)
}

func (u *upstream) front(t *testing.T, steps *Steps) *Proxy {
	t.Helper()
	f, err := steps.Listen("api", u.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: u.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// send sends one request as the manager would.
func send(t *testing.T, f *Proxy, method, path, body string) (status int, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, f.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := f.server.Client().Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func TestTheManagerDiesBeforeTheRequestIsForwardedOrAfterItTookEffect(t *testing.T) {
	const machines = "/apis/ingot.dev/v1alpha1/namespaces/research/machines/m/status"
	for _, c := range []struct {
		when Moment
		want []string
	}{
		{Before, []string{"PATCH " + machines, "PATCH " + machines}},
		{After, []string{"PATCH " + machines, "POST /api/v1/namespaces/metal/secrets", "PATCH " + machines}},
	} {
		t.Run(string(c.when), func(t *testing.T) {
			u, steps := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }), &Steps{}
			f := u.front(t, steps)
			kills, tookBefore := 0, 0
			steps.Arm(2, c.when, func() { kills++; tookBefore = len(u.seen()) })
			if status, err := send(t, f, http.MethodPatch, machines, "{}"); err != nil || status != http.StatusCreated {
				t.Fatalf("the first request: %d %v", status, err)
			}
			if status, err := send(t, f, http.MethodPost, "/api/v1/namespaces/metal/secrets", "{}"); err == nil {
				t.Errorf("the manager got an answer, %d, after its death", status)
			}
			if _, err := send(t, f, http.MethodPatch, machines, "{}"); err != nil {
				t.Errorf("the next manager: %v", err)
			}
			if got := u.seen(); !slices.Equal(got, c.want) {
				t.Errorf("took effect: %v, want %v", got, c.want)
			}
			if kills != 1 || tookBefore != len(c.want)-1 {
				t.Errorf("killed %d times, when %d requests had taken effect, want once and %d", kills, tookBefore, len(c.want)-1)
			}
		})
	}
}

func TestOnlyWhatChangesSomethingIsCounted(t *testing.T) {
	u, steps := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) }), &Steps{}
	f := u.front(t, steps)
	for _, r := range []struct{ method, path, body string }{
		{http.MethodGet, "/api/v1/nodes", ""},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/research/events", "{}"},
		{http.MethodPost, "/api/v1/namespaces/ingot-system/events", "{}"},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/ingot-system/leases/ingot-manager", "{}"},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "{}"},
		{http.MethodPost, "/redfish/v1/SessionService/Sessions", `{"UserName": "root", "Password": "secret"}`},
		{http.MethodDelete, "/redfish/v1/SessionService/Sessions/1", ""},
		{http.MethodPost, "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", `{"ResetType": "On"}`},
		{http.MethodPatch, "/apis/metal3.io/v1alpha1/namespaces/metal/baremetalhosts/h/status", `{"status": {"provisioning": {"state": "available"}, "errorMessage": "x"}}`},
		{http.MethodPatch, "/api/v1/namespaces/metal", `{"metadata": {"annotations": {"a": "b"}}}`},
		{http.MethodPost, "/api/v1/namespaces/metal/secrets", `{"data": {"userData": "c2VjcmV0"}}`},
	} {
		if _, err := send(t, f, r.method, r.path, r.body); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range steps.Requests() {
		got = append(got, r.String())
	}
	want := []string{
		"api POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset {ResetType=On} -> 409",
		"api PATCH baremetalhosts/h/status {status.errorMessage, status.provisioning.state=available} -> 409",
		"api PATCH namespaces/metal {metadata.annotations} -> 409",
		"api POST secrets -> 409",
	}
	if !slices.Equal(got, want) {
		t.Errorf("counted:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if kind, want := steps.Requests()[1].Kind(), "api PATCH baremetalhosts/status {status.errorMessage, status.provisioning.state=available}"; kind != want {
		t.Errorf("kind %q, want %q", kind, want)
	}
	if len(u.seen()) != 11 {
		t.Errorf("%d requests were passed on, want all 11", len(u.seen()))
	}
}

func TestAWatchStreams(t *testing.T) {
	more := make(chan struct{})
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
	})
	f := u.front(t, &Steps{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL()+"/api/v1/nodes?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := f.server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	line := make([]byte, 6)
	if _, err := io.ReadFull(response.Body, line); err != nil || string(line) != "first\n" {
		t.Errorf("got %q, %v before the watch ended", line, err)
	}
	close(more)
}

func TestTheBalancerHidesThatTheServiceIsAway(t *testing.T) {
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := reserved.Addr().String()
	if err := reserved.Close(); err != nil {
		t.Fatal(err)
	}
	balancer := StartBalancer(address)
	defer balancer.Close()
	answered := make(chan error, 2)
	ask := func(method string) {
		request, err := http.NewRequestWithContext(t.Context(), method, balancer.URL, nil)
		if err == nil {
			var response *http.Response
			if response, err = http.DefaultClient.Do(request); err == nil {
				err = response.Body.Close()
				if response.StatusCode != http.StatusOK {
					err = errors.Join(err, fmt.Errorf("%s was answered with %s", method, response.Status))
				}
			}
		}
		answered <- err
	}
	go ask(http.MethodPost)
	time.Sleep(2 * retryInterval) // the first try most likely meets nobody; nothing depends on it
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var broken atomic.Bool
	service := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !broken.Swap(true) {
			panic(http.ErrAbortHandler)
		}
	})}
	defer service.Close()
	go func() { _ = service.Serve(listener) }()
	go ask(http.MethodGet)
	for range 2 {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	if !broken.Load() {
		t.Error("no read was broken: this proves nothing")
	}
}
