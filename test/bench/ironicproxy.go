package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ingot-dev/ingot/controllers/host"
	"github.com/ingot-dev/ingot/test/bench/ironicloop"
	"github.com/ingot-dev/ingot/test/environment"
)

// ironicCall is a request that Ironic has answered.
type ironicCall struct {
	// at is when it came, and took how long Ironic needed.
	at   time.Time
	took time.Duration
	// kind is the method and what it was for, such as "PATCH node" or "PUT provision active", and node the UUID of its node; empty: it is of none.
	kind, node string
	code       int
	// isPage says that it is a page of the list of nodes, and isNext that it is not the first one. isNarrow says that it asks for some fields and for a limited
	// number of nodes.
	isPage, isNext, isNarrow bool
}

// ironicProxy stands before Ironic for Ingot and for the bare loop, and notes what they request. It holds config drives, which are secret: never log it.
type ironicProxy struct {
	url    string
	target *httputil.ReverseProxy
	server *http.Server
	ended  chan error

	mu    sync.Mutex
	calls []ironicCall
	// states are the provision states by the lists that were answered.
	states map[string]string
	// deployments are what each node was last deployed with.
	deployments map[string]ironicloop.Deployment
}

// ironicConnections is how many connections the proxy has: one for each host and one for the list. Ironic serves 100 connections, and answers no further one until
// one of these ends.
const ironicConnections = host.DefaultWorkers + 1

// newIronicProxy returns a proxy that listens nowhere.
func newIronicProxy(endpoint string) (*ironicProxy, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("count Ironic's calls: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = ironicConnections, ironicConnections
	p := &ironicProxy{states: map[string]string{}, deployments: map[string]ironicloop.Deployment{}}
	p.target = &httputil.ReverseProxy{
		// The client's Host stays, because Ironic makes addresses of it.
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: p.noteStates,
		Transport:      transport,
		// A client that has gone, such as a manager that was stopped, reads no answer.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return p, nil
}

// startIronicProxy starts a proxy on a port of the loopback.
func startIronicProxy(endpoint string) (*ironicProxy, error) {
	p, err := newIronicProxy(endpoint)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", environment.Loopback)
	if err != nil {
		return nil, fmt.Errorf("count Ironic's calls: %w", err)
	}
	p.url = "http://" + listener.Addr().String()
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.server.Serve(listener) }()
	return p, nil
}

func (p *ironicProxy) stop() error {
	if p == nil || p.server == nil {
		return nil
	}
	err := p.server.Close()
	if ended := <-p.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// ServeHTTP passes a request on to Ironic and notes it with its answer.
func (p *ironicProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "read the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	call := newIronicCall(r.Method, r.URL, body)
	call.at = time.Now()
	answer := &codeWriter{ResponseWriter: w, code: http.StatusOK}
	p.target.ServeHTTP(answer, r)
	call.took, call.code = time.Since(call.at), answer.code
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
	p.noteDeployment(call, body)
}

// codeWriter keeps the status of an answer.
type codeWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *codeWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// newIronicCall returns what a request is.
func newIronicCall(method string, address *url.URL, body []byte) ironicCall {
	parts := strings.Split(strings.Trim(address.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != "v1" {
		return ironicCall{kind: method + " version"}
	}
	if parts[1] != "nodes" {
		return ironicCall{kind: method + " " + parts[1]}
	}
	query := address.Query()
	switch {
	case len(parts) == 2 && method == http.MethodGet:
		return ironicCall{kind: "GET nodes", isPage: true, isNext: query.Has("marker"), isNarrow: query.Get("fields") != "" && query.Get("limit") != ""}
	case len(parts) == 2 || parts[2] == "detail":
		return ironicCall{kind: method + " " + strings.Join(parts[1:], "/")}
	case len(parts) == 3:
		return ironicCall{kind: method + " node", node: parts[2]}
	}
	kind := method + " " + parts[len(parts)-1]
	var request struct {
		Target string `json:"target"`
	}
	if json.Unmarshal(body, &request) == nil && request.Target != "" {
		kind += " " + request.Target
	}
	return ironicCall{kind: kind, node: parts[2]}
}

// noteDeployment keeps what the node is deployed with. The caller holds the lock.
func (p *ironicProxy) noteDeployment(call ironicCall, body []byte) {
	if call.code >= http.StatusBadRequest {
		return
	}
	d := p.deployments[call.node]
	switch call.kind {
	case "PATCH node":
		var operations []struct {
			Path  string          `json:"path"`
			Value json.RawMessage `json:"value"`
		}
		if json.Unmarshal(body, &operations) != nil {
			return
		}
		for _, o := range operations {
			var info map[string]any
			if o.Path == "/instance_info" && json.Unmarshal(o.Value, &info) == nil {
				d.InstanceInfo = info
			}
		}
	case "PUT provision active":
		var request struct {
			ConfigDrive map[string]any `json:"configdrive"`
		}
		if json.Unmarshal(body, &request) != nil {
			return
		}
		d.ConfigDrive = request.ConfigDrive
	}
	p.deployments[call.node] = d
}

// noteStates keeps the provision states that a page of the list has.
func (p *ironicProxy) noteStates(r *http.Response) error {
	if r.StatusCode != http.StatusOK || !newIronicCall(r.Request.Method, r.Request.URL, nil).isPage {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var page struct {
		Nodes []struct {
			UUID  string `json:"uuid"`
			State string `json:"provision_state"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return fmt.Errorf("read a page of Ironic's nodes: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range page.Nodes {
		p.states[n.UUID] = n.State
	}
	return nil
}

// count returns how many nodes are in the provision state by the last lists.
func (p *ironicProxy) count(state string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, s := range p.states {
		if s == state {
			n++
		}
	}
	return n
}

// lists returns how many times the nodes were listed since takeCalls was last called.
func (p *ironicProxy) lists() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, call := range p.calls {
		if call.isPage && !call.isNext {
			n++
		}
	}
	return n
}

// takeCalls returns the calls since it was last called.
func (p *ironicProxy) takeCalls() []ironicCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

// lastDeployments returns what the nodes were last deployed with.
func (p *ironicProxy) lastDeployments() map[string]ironicloop.Deployment {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]ironicloop.Deployment, len(p.deployments))
	for uuid, d := range p.deployments {
		if d.InstanceInfo != nil {
			out[uuid] = d
		}
	}
	return out
}
