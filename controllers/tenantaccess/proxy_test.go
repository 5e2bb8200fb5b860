package tenantaccess

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// gatekeeper passes requests on to the real API server, as its administrator, unless refuse gives a status for them.
func gatekeeper(t *testing.T, refuse func(path string) int) http.Handler {
	t.Helper()
	config, err := Vet(server.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Authorization") },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if status := refuse(request.URL.Path); status != 0 {
			w.WriteHeader(status)
			return
		}
		proxy.ServeHTTP(w, request)
	})
}
