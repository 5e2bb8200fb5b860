package ironic

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// answering is a server that gives one answer to all that is asked of nodes, ports and inventories.
type answering struct {
	mu     sync.Mutex
	status int
	body   []byte
	asked  int
}

func (a *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	w.Header().Set("Content-Type", "application/json")
	for name, version := range map[string]string{"Maximum-": "1.95", "Minimum-": "1.1", "": "1.95"} {
		w.Header().Set("X-OpenStack-Ironic-API-"+name+"Version", version)
	}
	if strings.Trim(r.URL.Path, "/") == "" || strings.Trim(r.URL.Path, "/") == "v1" {
		fmt.Fprint(w, `{"id":"v1","version":{"id":"v1","min_version":"1.1","version":"1.95","status":"CURRENT"},"versions":[],"default_version":{"id":"v1","min_version":"1.1","version":"1.95","status":"CURRENT","links":[]}}`)
		return
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func (a *answering) set(status int, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.body, a.asked = status, body, 0
}

// checkError fails the test unless the error has a kind and a text that a person can read.
func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var typed *hardware.Error
	if !errors.As(err, &typed) || typed.Kind == "" {
		t.Errorf("an error without a kind: %v", err)
	}
	if text := err.Error(); len(text) > 2000 || strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
		t.Errorf("the error is no line for a person: %q", text)
	}
}

// FuzzAnswers: whatever answers in Ironic's place, what is made of it is bounded, is no negative number and can be shown, and an error has its kind.
func FuzzAnswers(f *testing.F) {
	f.Add(200, []byte(`{"nodes":[{"uuid":"a","name":"b","provision_state":"available","power_state":"power on","properties":{"memory_mb":"1024","cpus":8},"extra":{"ingot_host":"u"}}],"next":"x"}`))
	f.Add(200, []byte(`{"uuid":"a","provision_state":"inspect wait","deploy_step":{"step":"x"},"provision_updated_at":"2026-01-01T00:00:00+00:00","ports":[{"address":"0C:42:a1:00:00:01","node_uuid":"a"}]}`))
	f.Add(200, []byte(`{"inventory":{"memory":{"physical_mb":9223372036854775807},"cpu":{"count":-1},"disks":[{"name":"/dev/sda","size":-5}],"interfaces":[{"mac_address":"0c:42:a1:00:00:01","vendor":"0x15b3","product":"0x1021"}]},"plugin_data":{"pci_devices":[{"vendor_id":"10de","bus":"0000:1b:00.0"}]}}`))
	f.Add(409, []byte(`{"error_message":"{\"faultstring\":\"Node a is locked by host b\"}"}`))
	f.Add(500, []byte(`{"error_message":{"faultstring":"\u001b[31m concurrent action limit"}}`))
	far := &answering{}
	server := httptest.NewServer(far)
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 || len(body) > 1<<14 {
			return
		}
		far.set(status, body)
		i := New(Options{Endpoint: server.URL, Log: slog.New(slog.DiscardHandler)})
		host := hardware.Host{UID: "u", Namespace: "a", Name: "b"}
		read, err := i.read(t.Context(), host, "a")
		checkError(t, err)
		_, err = i.readMACs(t.Context(), host, node{uuid: "a"})
		checkError(t, err)
		_, err = i.Observe(t.Context(), host)
		checkError(t, err)
		data, err := i.readInventory(t.Context(), host, node{uuid: "a"})
		checkError(t, err)
		found := inventoryOf(read.properties, data, nil)
		if input.Clean(found, hardware.MaxText, hardware.MaxParts) != nil {
			return
		}
		checkInventory(t, found)
		if far.asked > 64 {
			t.Errorf("%d requests", far.asked)
		}
	})
}

func checkInventory(t *testing.T, found *hardware.Inventory) {
	t.Helper()
	if found.MemoryBytes < 0 || found.CPUThreads < 0 || len(found.Disks) > hardware.MaxParts || len(found.NICs) > hardware.MaxParts || len(found.PCIDevices) > hardware.MaxParts {
		t.Errorf("%+v", found)
	}
	for _, d := range found.Disks {
		if d.SizeBytes < 0 {
			t.Errorf("a disk of %d bytes", d.SizeBytes)
		}
	}
	text, err := json.Marshal(found)
	if err != nil || strings.ContainsFunc(string(text), func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("it cannot be shown: %q, %v", text, err)
	}
}
