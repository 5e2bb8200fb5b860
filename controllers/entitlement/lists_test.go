package entitlement

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// listCounter counts the lists that are asked for.
type listCounter struct {
	mu    sync.Mutex
	count int
}

func (c *listCounter) RoundTrip(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(q *http.Request) (*http.Response, error) {
		if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/api/v1/namespaces") {
			c.mu.Lock()
			c.count++
			c.mu.Unlock()
		}
		return next.RoundTrip(q)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

func TestSteadyLooksShareTheirLists(t *testing.T) {
	counter := &listCounter{}
	config := rest.CopyConfig(server.Config)
	config.Wrap(counter.RoundTrip)
	shared, err := client.New(config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	access := &tenantaccess.Access{Client: shared}
	var l lists
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	read := func(at time.Duration, isFresh bool) client.ObjectList {
		t.Helper()
		list, err := l.read(t.Context(), access, "Namespace", now.Add(at), isFresh, &corev1.NamespaceList{})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, c := range []struct {
		name    string
		at      time.Duration
		isFresh bool
		forget  bool
		want    int
	}{
		{"the first look", 0, false, false, 1},
		{"the next tenant's", time.Second, false, false, 1},
		{"one after a change", time.Second, true, false, 2},
		{"one after a write", 2 * time.Second, false, true, 3},
		{"one a while later", 2*time.Second + listAge - 1, false, false, 3},
		{"one when the list is old", 2*time.Second + listAge, false, false, 4},
	} {
		if c.forget {
			l.forget(access)
		}
		if read(c.at, c.isFresh); counter.count != c.want {
			t.Errorf("%s: %d lists, expected %d", c.name, counter.count, c.want)
		}
	}
}
