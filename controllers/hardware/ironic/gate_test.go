package ironic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// gate is what stands between one Installer and an Ironic: it asks for a password, may be silent, and may hide the host's node, as Ironic does from a project that the
// node is no more lent to.
type gate struct {
	*httptest.Server
	node string

	mu               sync.Mutex
	password         string
	isSilent, hasHid bool
}

func newGate(t *testing.T, endpoint, node string) *gate {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{node: node, password: password}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ModifyResponse: g.hide}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		isSilent, wanted := g.isSilent, g.password
		g.mu.Unlock()
		_, given, _ := r.BasicAuth()
		switch {
		case isSilent:
			panic(http.ErrAbortHandler) // the connection breaks
		case given != wanted:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

// change changes the gate.
func (g *gate) change(do func(*gate)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do(g)
}

// hide takes the node out of a list of nodes.
func (g *gate) hide(response *http.Response) error {
	g.mu.Lock()
	hasHid := g.hasHid
	g.mu.Unlock()
	if !hasHid || response.Request.Method != http.MethodGet || response.Request.URL.Path != "/v1/nodes" {
		return nil
	}
	var listed struct {
		Nodes []map[string]any `json:"nodes"`
	}
	err := json.NewDecoder(response.Body).Decode(&listed)
	if err != nil {
		return err
	}
	listed.Nodes = slices.DeleteFunc(listed.Nodes, func(n map[string]any) bool { return n["name"] == g.node })
	body, err := json.Marshal(listed)
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	response.ContentLength = int64(len(body))
	return err
}
