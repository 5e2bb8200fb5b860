package tenantaccess

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// moody is a tenant that answers as it should unless isBad is set, with a registry whose clock is told.
type moody struct {
	registry *Registry
	clock    *clocktesting.FakeClock
	isBad    atomic.Bool
	asked    atomic.Int64
}

// newMoody makes a tenant that answers with bad the requests for the path while it is in that mood.
func newMoody(t *testing.T, path string, timeout time.Duration, bad http.HandlerFunc) *moody {
	t.Helper()
	m := &moody{clock: clocktesting.NewFakeClock(time.Now())}
	inner := gatekeeper(t, func(string) int { return 0 })
	proxy, ca := newTLSServer(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if m.isBad.Load() {
			m.asked.Add(1)
		}
		switch {
		case m.isBad.Load() && request.URL.Path == path:
			bad(w, request)
		case request.URL.Query().Has("sendInitialEvents"):
			// As a server that is too old for it, so that the objects are listed.
			refused := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
			http.Error(w, refused.Error(), http.StatusUnprocessableEntity)
		default:
			inner.ServeHTTP(w, request)
		}
	}))
	m.registry = newRegistry(t, Options{Clock: m.clock, Timeout: timeout, Jitter: func() float64 { return 0 }})
	if err := m.registry.Set(t.Context(), tenantKey, configOf(proxy.URL, ca, "", "token: a")); err != nil {
		t.Fatal(err)
	}
	return m
}

// pass lets time pass. The loop of the probes is woken, because it may have read the clock before and set its timer after.
func (m *moody) pass(d time.Duration) {
	m.clock.Step(d)
	select {
	case m.registry.clientSets()[0].probeNow <- struct{}{}:
	default:
	}
}

// awaitPause waits until the tenant is not used, and is to be tried again after a pause.
func (m *moody) awaitPause(t *testing.T, reason string, pause time.Duration) {
	t.Helper()
	var err error
	set := m.registry.clientSets()[0]
	defer func() {
		if t.Failed() {
			t.Log("last error:", err)
		}
	}()
	eventually(t, reason+", tried again after "+pause.String(), func() bool {
		_, err = m.registry.For(tenantKey)
		return max(set.suspension(), set.stallPause()) == pause && reasonOf(err) == reason && strings.HasSuffix(err.Error(), "is tried again after "+pause.String())
	})
}

func TestATenantThatIsTooLargeIsTriedAgainAtGrowingIntervalsAndComesBack(t *testing.T) {
	m := newMoody(t, "/api/v1/nodes", time.Minute, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		repeat(w, `{"kind":"NodeList","apiVersion":"v1","items":[`, func(int) string { return strings.Repeat("{},", 1000) })
	})
	m.isBad.Store(true)
	minutes := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
	m.pass(0)
	for i, n := range minutes {
		m.awaitPause(t, v1alpha1.ReasonTenantTooLarge, n*time.Minute)
		if i == len(minutes)-1 {
			m.isBad.Store(false)
		}
		m.pass(n*time.Minute - time.Millisecond)
		if left := m.registry.clientSets()[0].suspension(); left != time.Millisecond {
			t.Errorf("it is tried again in %s", left)
		}
		m.pass(time.Millisecond)
	}
	usable(t, m.registry, tenantKey)
}

func TestATenantThatStallsCallsAndAnswersProbesIsUsedAfterGrowingPauses(t *testing.T) {
	m := newMoody(t, "/api/v1/secrets", 300*time.Millisecond, func(w http.ResponseWriter, request *http.Request) { stall(w, request, nil) })
	access := usable(t, m.registry, tenantKey)
	callOnce := func() error { return access.Client.List(t.Context(), &corev1.SecretList{}) }
	m.isBad.Store(true)
	if err := callOnce(); err == nil {
		t.Fatal("a body without an end is an answer")
	}
	// One call may stall by chance.
	usable(t, m.registry, tenantKey)
	for _, seconds := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		if err := callOnce(); err == nil {
			t.Fatal("a body without an end is an answer")
		}
		m.awaitPause(t, v1alpha1.ReasonTenantUnreachable, seconds*time.Second)
		m.pass(seconds*time.Second - time.Millisecond)
		asked := m.asked.Load()
		if err := callOnce(); err == nil || m.asked.Load() != asked {
			t.Errorf("the tenant is called in the pause: %v", err)
		}
		if left := m.registry.clientSets()[0].stallPause(); left != time.Millisecond {
			t.Errorf("it is tried again in %s", left)
		}
		m.pass(time.Millisecond)
		usable(t, m.registry, tenantKey)
	}
	m.isBad.Store(false)
	if err := callOnce(); err != nil {
		t.Error(err)
	}
	m.pass(maxStallPause + time.Second)
	m.isBad.Store(true)
	if err := callOnce(); err == nil {
		t.Fatal("a body without an end is an answer")
	}
	usable(t, m.registry, tenantKey)
}
