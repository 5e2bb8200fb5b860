package ironicloop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// ironicOfNodes answers as an Ironic does whose nodes change their state at once.
type ironicOfNodes struct {
	mu       sync.Mutex
	states   map[string]string
	power    map[string]string
	requests []string
	// refusals is how many requests for another provision state are refused.
	refusals int
}

var reached = map[string]string{"provide": "available", "active": "active", "deleted": "available", "manage": "manageable"}

// ServeHTTP implements http.Handler.
func (i *ironicOfNodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.Method == http.MethodGet {
		i.writePage(w, r)
		return
	}
	uuid := strings.Split(r.URL.Path, "/")[3]
	var request struct{ Target string }
	_ = json.NewDecoder(r.Body).Decode(&request) // a PATCH is a list
	i.requests = append(i.requests, strings.TrimSpace(fmt.Sprint(r.Method, " ", uuid, " ", request.Target)))
	switch {
	case r.Method == http.MethodPatch:
		fmt.Fprint(w, "{}")
		return
	case strings.HasSuffix(r.URL.Path, "/power"):
		i.power[uuid] = request.Target
	case i.refusals > 0:
		i.refusals--
		w.WriteHeader(http.StatusConflict)
		return
	default:
		i.states[uuid] = reached[request.Target]
	}
	w.WriteHeader(http.StatusAccepted)
}

// writePage writes the page behind the marker.
func (i *ironicOfNodes) writePage(w http.ResponseWriter, r *http.Request) {
	var page []map[string]any
	for _, uuid := range slices.Sorted(maps.Keys(i.states)) {
		if uuid > r.FormValue("marker") && fmt.Sprint(len(page)) != r.FormValue("limit") {
			page = append(page, map[string]any{"uuid": uuid, "provision_state": i.states[uuid], "power_state": i.power[uuid], "last_error": "no such image"})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"nodes": page, "next": "http://" + r.Host})
}

// start returns a Loop that asks for pages of two nodes.
func (i *ironicOfNodes) start(t *testing.T) *Loop {
	t.Helper()
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	loop, err := New(server.URL, 2, time.Millisecond, 2)
	if err != nil {
		t.Fatal(err)
	}
	return loop
}

func TestAListHasTheNodesOfEveryPage(t *testing.T) {
	for n := range 6 {
		i := &ironicOfNodes{states: map[string]string{}}
		for uuid := range n {
			i.states[fmt.Sprint(uuid)] = "manageable"
		}
		if all, err := i.start(t).List(t.Context()); err != nil || len(all) != n {
			t.Errorf("%d nodes: %v, %v", n, all, err)
		}
	}
}

func TestNodesAreDeployedAndReleasedWhateverIronicRefusesOnce(t *testing.T) {
	i := &ironicOfNodes{states: map[string]string{"a": "manageable", "b": "manageable", "c": "manageable", "other": "manageable"}, power: map[string]string{}, refusals: 3}
	loop := i.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := loop.Deploy(ctx, map[string]Deployment{"a": {}, "b": {}, "c": {}}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(i.states, i.power); got != "map[a:active b:active c:active other:manageable] map[a:power on b:power on c:power on]" {
		t.Errorf("deployed: %s", got)
	}
	if got := len(i.requests); got != 3+12 {
		t.Errorf("%d requests, expected 3 that were refused and 4 for each node: %q", got, i.requests)
	}
	if err := loop.Release(ctx, map[string]bool{"a": true, "b": true, "c": true}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(i.states, i.power); got != "map[a:manageable b:manageable c:manageable other:manageable] map[a:power off b:power off c:power off]" {
		t.Errorf("released: %s", got)
	}
}

func TestADeploymentFailsWithTheNodeThatCannotBecomeActive(t *testing.T) {
	i := &ironicOfNodes{states: map[string]string{"a": "deploy failed"}}
	err := i.start(t).Deploy(t.Context(), map[string]Deployment{"a": {}})
	if err == nil || !strings.Contains(err.Error(), "node a went to the state deploy failed: no such image") {
		t.Errorf("got %v", err)
	}
}
