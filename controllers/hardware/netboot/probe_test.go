package netboot

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// noStore is never asked.
type noStore struct{ Store }

func TestTheBootServiceIsToldFromWhatElseAnswersAtItsAddress(t *testing.T) {
	key, other := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)
	service, err := New(Options{
		Store: noStore{}, Key: func(context.Context) ([]byte, error) { return key, nil }, BaseURL: "http://10.0.0.2:8090",
		Files: fstest.MapFS{"kernel": {}, "initrd": {}}, Kernel: "kernel", Initrd: "initrd",
	})
	if err != nil {
		t.Fatal(err)
	}
	boot := httptest.NewServer(service)
	defer boot.Close()
	answer := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", boot.URL+PathIdentity)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	// proxied passes the paths that servers ask for, as a proxy on the provisioning network does, and answers the others itself.
	proxied := func(status, kernel int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == PathIdentity:
				w.WriteHeader(status)
			case kernel != http.StatusOK:
				w.WriteHeader(kernel)
			default:
				service.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		name, url string
		key       []byte
		kind      hardware.Kind
		says      string
	}{
		{"this installation's", boot.URL, key, "", ""},
		{"another installation's", boot.URL, other, hardware.Conflict, "another installation"},
		{"a web server", answer(200, "<html>welcome</html>"), key, hardware.Conflict, "no boot service"},
		{"a web server without the path", answer(404, ""), key, hardware.Conflict, "404"},
		{"a redirect to the right one", answer(302, ""), key, hardware.Conflict, "302"},
		{"an endless answer", answer(200, strings.Repeat("x", 1<<20)), key, hardware.Conflict, "no boot service"},
		{"a proxy without its server", answer(502, ""), key, hardware.Unreachable, "502"},
		{"a proxy that does not know the path", proxied(404, 200), key, hardware.Unreachable, PathIdentity},
		{"a proxy that forbids the path", proxied(403, 200), key, hardware.Unreachable, "403"},
		{"a proxy that forbids the manager everything", proxied(403, 403), key, hardware.Unreachable, pathKernel},
		{"a proxy that refuses the method", proxied(405, 200), key, hardware.Unreachable, "405"},
		{"a proxy that redirects the path to a login", proxied(302, 200), key, hardware.Unreachable, "302"},
		{"a proxy without the path and without its server", proxied(404, 502), key, hardware.Unreachable, "502"},
		{"a web server that forbids one path and lacks the other", proxied(403, 404), key, hardware.Conflict, "404"},
		{"nothing", gone.URL, key, hardware.Unreachable, ""},
	} {
		err := Probe(t.Context(), http.DefaultClient, c.url, c.key)
		if hardware.KindOf(err) != c.kind || (err != nil) != (c.kind != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && strings.Contains(err.Error(), identityOf(c.key)) {
			t.Errorf("%s: the error has the identity", c.name)
		}
	}
}
