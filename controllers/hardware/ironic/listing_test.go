package ironic_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	server "github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
)

// recorder is what stands before an Ironic and remembers every request.
type recorder struct {
	*httptest.Server
	// refuse returns the status with which a request is refused; 0: it is not.
	refuse func(*http.Request) int
	// change changes an answer.
	change func(*http.Response)

	mu   sync.Mutex
	seen []*http.Request
}

func newRecorder(t *testing.T, endpoint string) *recorder {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{refuse: func(*http.Request) int { return 0 }, change: func(*http.Response) {}}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host // the address of the next page is one of this server
		},
		ModifyResponse: func(response *http.Response) error { r.change(response); return nil },
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.seen = append(r.seen, request)
		r.mu.Unlock()
		if status := r.refuse(request); status != 0 {
			w.WriteHeader(status)
			return
		}
		proxy.ServeHTTP(w, request)
	}))
	t.Cleanup(r.Close)
	return r
}

// take returns the requests with the method and the path since the last call.
func (r *recorder) take(method, path string) (taken []*http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, request := range r.seen {
		if request.Method == method && request.URL.Path == path {
			taken = append(taken, request)
		}
	}
	r.seen = nil
	return taken
}

// pace is a clock that stands still between two calls of advance.
type pace struct {
	mu  sync.Mutex
	now time.Time
}

func (p *pace) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *pace) advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

// pageSize is the number of nodes in one page, and of the copies beside the host's node.
const pageSize = 500

// copies creates so many nodes that are as the host's, apart from their names and hosts. Their hardware type is one that no conductor has, so that Ironic does nothing with them.
const copies = `insert into nodes (uuid, name, extra, driver, created_at, version, provision_state, power_state, maintenance, automated_clean, protected, retired, console_enabled, properties)
with recursive copy(i) as (select 1 union all select i + 1 from copy where i < 500)
select printf('00000000-0000-4000-8000-%012d', i), 'hall~copy-' || i, printf('{"ingot_host": "copy-%d", "ingot_attempt": %d, "ingot_work": "Inspect"}', i, i),
'absent', created_at, version, 'manageable', 'power on', 0, 0, 0, 0, 0, '{}' from nodes, copy where name = ?`

func TestAllHostsAreObservedByOneList(t *testing.T) {
	require.Deep(t)
	t.Parallel()
	running := server.Start(t, server.Options{})
	front, clock := newRecorder(t, running.Endpoint), &pace{now: time.Now()}
	const age = 5 * time.Second
	first := newFixture(t, ironic.Options{Endpoint: front.URL, Clock: clock.Now, ListAge: age})
	if err := first.inspect(attemptOf(1)); err != nil {
		t.Fatal(err)
	}
	hosts := []hardware.Host{first.host, newFixture(t, first.options).host, newFixture(t, first.options).host}
	observeAll := func() {
		t.Helper()
		var observing sync.WaitGroup
		for range 20 {
			for _, host := range hosts {
				observing.Go(func() {
					if _, err := first.installer.Observe(t.Context(), host); err != nil {
						t.Errorf("observe %s: %v", host, err)
					}
				})
			}
		}
		observing.Wait()
	}

	first.restart()
	front.take("", "")
	observeAll()
	clock.advance(age - time.Millisecond)
	observeAll()
	expectLists(t, front, 1)
	clock.advance(time.Millisecond)
	observeAll()
	expectLists(t, front, 1)

	running.Query(copies, first.name())
	clock.advance(age)
	observeAll()
	expectLast(t, first)
	expectLists(t, front, 2)

	running.Kill()
	running.RunWith(func(options *server.Options) { options.PageLimit = 200 })
	clock.advance(age)
	observeAll()
	expectLast(t, first)
	expectLists(t, front, 3) // 501 nodes by pages of 200
}

// expectLast checks that the last node is known.
func expectLast(t *testing.T, f *fixture) {
	t.Helper()
	seen, err := f.installer.Observe(t.Context(), hardware.Host{UID: "copy-500", Namespace: "hall", Name: "copy-500"})
	if err != nil || seen.Power != hardware.PowerOn || seen.Attempt == nil || seen.Attempt.Number != pageSize {
		t.Errorf("the last of %d nodes: power %s, attempt %+v: %v", pageSize+1, seen.Power, seen.Attempt, err)
	}
}

// expectLists checks how often nodes were listed, and that each list asks for a page of fields, without those that are secret or large.
func expectLists(t *testing.T, front *recorder, want int) {
	t.Helper()
	var queries []url.Values
	for _, request := range front.take(http.MethodGet, "/v1/nodes") {
		query := request.URL.Query()
		queries = append(queries, query)
		fields := strings.Split(query.Get("fields"), ",")
		if query.Get("limit") != "500" || len(fields) < 2 {
			t.Errorf("expected a limit of %d and fields, the list is %s", pageSize, request.URL)
		}
		for _, field := range fields {
			switch field {
			case "driver_info", "instance_info", "driver_internal_info":
				t.Errorf("the list asks for %s", field)
			}
		}
	}
	if len(queries) != want {
		t.Errorf("expected %d lists, there were %d", want, len(queries))
	}
	for i, query := range queries {
		if query.Has("marker") != (i > 0) {
			t.Errorf("expected each page after the one before, seen %v", queries)
		}
	}
}
