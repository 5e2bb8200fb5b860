package peers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
	"github.com/ingot-dev/ingot/controllers/hardware/ironic"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/controllers/plan/join"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// list returns a JSON list of so many items, of so many bytes about.
func list(items int, item string, bytes int) string {
	var out strings.Builder
	out.WriteString("[" + item)
	pad := max(bytes/items-len(item)-1, 0)
	for range items - 1 {
		out.WriteString("," + strings.Repeat(" ", pad) + item)
	}
	out.WriteString("]")
	return out.String()
}

// answering serves the text at the path, and what a client needs to get there.
func answering(t *testing.T, path, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Openstack-Ironic-Api-Maximum-Version", "1.90")
		w.Header().Set("X-Auth-Token", "token")
		w.Header().Set("Location", "/redfish/v1/SessionService/Sessions/1")
		switch {
		case strings.HasPrefix(r.URL.Path, path):
			_, _ = w.Write([]byte(text))
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
		default:
			_, _ = w.Write([]byte(`{"@odata.id":"/redfish/v1/","RedfishVersion":"1.6.0","Systems":{"@odata.id":"/redfish/v1/Systems"},"Links":{"Sessions":{"@odata.id":"/redfish/v1/SessionService/Sessions"}}}`))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestOneMessageOfAPeerIsBounded sends each peer's worst message that is let through, and one that is just over the bound. All that was allocated for it counts,
// also what is free again.
func TestOneMessageOfAPeerIsBounded(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "worst.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	register := func(items int) func() error {
		body := `{"inventory":{"disks":` + list(items, "{}", protocol.MaxRequest-1000) + `}}`
		return func() error {
			return protocol.Decode(strings.NewReader(body), protocol.MaxRequest, &protocol.Registration{})
		}
	}
	askBMC := func(items int) func() error {
		url := answering(t, "/redfish/v1/Systems/1", `{"@odata.id":"/redfish/v1/Systems/1","Members":`+list(items, "{}", 8<<20-1000)+`}`)
		bmc, err := redfish.New(redfish.Options{}).OpenBMC(t.Context(), hardware.Endpoint{Address: url, SystemPath: "/redfish/v1/Systems/1", Username: "a", Password: "b", InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		return func() error {
			_, err := bmc.PowerState(t.Context())
			return err
		}
	}
	askIronic := func(items int) func() error {
		url := answering(t, "/v1/nodes", `{"nodes":`+list(items, "{}", 16<<20-1000)+`}`)
		installer := ironic.New(ironic.Options{Endpoint: url})
		return func() error {
			_, err := installer.Observe(t.Context(), hardware.Host{UID: "h", Namespace: "metal", Name: "h"})
			return err
		}
	}
	yaml := func(items int) string { return "clusterDNS: [a" + strings.Repeat(",a", items) + "]\n" }
	for _, c := range []struct {
		peer string
		most int // MiB
		run  func() error
	}{
		{"an agent: a registration", 40, register(16_000)},
		{"an agent: one that is over the bound", 10, register(40_000)},
		{"a BMC: an answer", 160, askBMC(95_000)},
		{"a BMC: one that is over the bound", 100, askBMC(210_000)},
		{"an Ironic: a page of nodes", 200, askIronic(500)},
		{"an Ironic: one with more nodes than were asked for", 400, askIronic(49_000)},
		{"an Ironic: one that is over the bound", 100, askIronic(110_000)},
		{"a tenant: kubelet-config", 20, func() error { join.FindDNS(join.Sources{KubeletConfig: yaml(3900)}); return nil }},
		{"a tenant: a kubeconfig", 40, func() error { _, err := tenantaccess.Vet([]byte(yaml(3900))); return err }},
		{"a user: a file", 1200, func() error {
			_, err := offline.Read([]string{file("apiVersion: v1\nkind: A\nmetadata: {name: a}\na: [0" + strings.Repeat(",0", 490_000) + "]\n")}, nil)
			return err
		}},
		{"a user: one that is over the bound", 300, func() error {
			_, err := offline.Read([]string{file("kind: A\na: [0" + strings.Repeat(",0", 600_000) + "]\n")}, nil)
			return err
		}},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		err := c.run()
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		used := int(after.TotalAlloc-before.TotalAlloc) >> 20
		t.Logf("%s: %d MiB, %s: %.80v", c.peer, used, took.Round(time.Millisecond), err)
		if used > c.most {
			t.Errorf("%s: %d MiB, expected at most %d", c.peer, used, c.most)
		}
		if isOver := strings.Contains(c.peer, "over the bound") || strings.Contains(c.peer, "more nodes"); isOver && (err == nil || !strings.Contains(fmt.Sprintf("%+v", err), "too large")) {
			t.Errorf("%s: %v", c.peer, err)
		}
	}
}
