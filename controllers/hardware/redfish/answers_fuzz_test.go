package redfish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	simulated "github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/bmc/bmctest"
)

var isWritingCorpus = flag.Bool("write-corpus", false, "write testdata/fuzz/FuzzAnswers from the personalities")

const corpus = "testdata/fuzz/FuzzAnswers"

// selfAnswering answers every read with one body, so that each link of it leads to itself, and every change with a status and the body.
type selfAnswering struct {
	status   int
	body     []byte
	requests int
}

// RoundTrip implements http.RoundTripper.
func (a *selfAnswering) RoundTrip(req *http.Request) (*http.Response, error) {
	a.requests++
	status := http.StatusOK
	if req.Method != http.MethodGet {
		status = a.status
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: req, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// openFuzzed returns a BMC behind the answers, with a session.
func openFuzzed(t testing.TB, answers *selfAnswering) *bmc {
	t.Helper()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	client := New(Options{Clock: func() time.Time { return now }})
	endpoint := hardware.Endpoint{Address: "https://bmc.example", Username: "operator", Password: "p4ss-w0rd", SystemPath: "/redfish/v1/Systems/1"}
	b := &bmc{client: client, endpoint: endpoint, key: newSessionKey(endpoint)}
	w, err := newTransport(endpoint, client.lineTo(endpoint.Address), client.options)
	if err != nil {
		t.Fatal(err)
	}
	w.base.RegisterProtocol("https", answers)
	w.token = "t0ken"
	api, err := newAPIClient(t.Context(), endpoint.Address, w)
	if err != nil {
		t.Fatal(err)
	}
	l := &login{transport: w, api: api, isChecked: true}
	_ = getJSON(api, "/redfish/v1/", &l.root) // what is no root has no links
	s, err := client.acquireSession(b)
	if err != nil {
		t.Fatal(err)
	}
	s.login = l
	client.releaseSession(s)
	return b
}

// portKinds are all that an error of the port may be.
var portKinds = []hardware.Kind{
	hardware.Unreachable, hardware.Unauthorized, hardware.Busy, hardware.SessionsExhausted, hardware.NotFound, hardware.Invalid, hardware.Unsupported, hardware.Conflict,
}

// FuzzAnswers has every call of the port read the answer. Whatever it is, the call ends after a limited number of requests with an error that has a kind and no
// secret, or with values that are possible.
func FuzzAnswers(f *testing.F) {
	for _, document := range personalityDocuments(f) {
		f.Add(http.StatusNoContent, document)
		f.Add(http.StatusBadRequest, append([]byte("\xef\xbb\xbf"), document...))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if len(body) > 4<<10 {
			return // the limits of a body have a test of their own
		}
		answers := &selfAnswering{status: min(max(status, 200), 599), body: body}
		for name, call := range map[string]func(context.Context, *bmc) error{
			"power":      func(ctx context.Context, b *bmc) error { _, err := b.PowerState(ctx); return err },
			"power off":  func(ctx context.Context, b *bmc) error { return b.SetPower(ctx, hardware.TurnOff) },
			"boot":       func(ctx context.Context, b *bmc) error { return b.SetBootOnce(ctx, hardware.BootNetwork) },
			"boot media": func(ctx context.Context, b *bmc) error { return b.SetBootAlways(ctx, hardware.BootMedia) },
			"pinned": func(ctx context.Context, b *bmc) error {
				return b.SetPinnedBootOnce(ctx, "http://h/s3cret/ingot-agent.efi")
			},
			"clear": func(ctx context.Context, b *bmc) error { return b.ClearBoot(ctx) },
			"media": func(ctx context.Context, b *bmc) error {
				return b.SetVirtualMedia(ctx, "http://h/s3cret/ingot-agent.iso")
			},
			"inventory": checkInventory,
			"secure boot": func(ctx context.Context, b *bmc) error {
				_, _, err := b.SecureBoot(ctx)
				return err
			},
		} {
			answers.requests = 0
			b := openFuzzed(t, answers)
			checkPortError(t, name, call(t.Context(), b))
			if answers.requests > 2*maxRequests+10 {
				t.Errorf("%s: %d requests", name, answers.requests)
			}
		}
	})
}

func checkPortError(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if !slices.Contains(portKinds, hardware.KindOf(err)) {
		t.Errorf("%s: %v has no kind", name, err)
	}
	for _, secret := range []string{"p4ss-w0rd", "t0ken", "s3cret"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v has a secret", name, err)
		}
	}
	if text := err.Error(); len(text) > 4000 || strings.ContainsAny(text, "\n\r\x00") {
		t.Errorf("%s: an error of %d bytes: %.200q", name, len(text), text)
	}
}

// checkInventory reads the inventory and fails for what no server has.
func checkInventory(ctx context.Context, b *bmc) error {
	i, err := b.Inventory(ctx)
	if i.CPUThreads < 0 || i.CPUThreads > 1<<20 || i.MemoryBytes < 0 || len(i.PCIDevices) > hardware.MaxParts || len(i.Disks) > hardware.MaxParts {
		return fmt.Errorf("an inventory of %d threads, %d bytes, %d devices", i.CPUThreads, i.MemoryBytes, len(i.PCIDevices))
	}
	for _, d := range i.PCIDevices {
		if len(d.Model) > hardware.MaxText || d.Class != "" && len(d.Class) != 6 || d.VendorID != "" && len(d.VendorID) != 4 || d.DeviceID != "" && len(d.DeviceID) != 4 {
			return fmt.Errorf("a device %+v", d)
		}
	}
	return err
}

// personalityDocuments returns the resources of all personalities and products, one of each shape.
func personalityDocuments(t testing.TB) [][]byte {
	t.Helper()
	all, err := simulated.Personalities()
	if err != nil {
		t.Fatal(err)
	}
	products, err := simulated.Products()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range products {
		if all[name], err = simulated.ProductNamed(name); err != nil {
			t.Fatal(err)
		}
	}
	var documents [][]byte
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := simulated.New(simulated.Options{Name: "server", Machine: &bmctest.Server{}, Hardware: bmctest.Inventory(), Personality: all[name]})
		for _, path := range b.Paths() {
			document, _ := b.Document(path)
			if key := shapeOf(document); !seen[key] {
				seen[key] = true
				documents = append(documents, document)
			}
		}
	}
	return documents
}

// shapeOf returns the names of a document's members and of those within them.
func shapeOf(document []byte) string {
	var names []string
	var visit func(at string, value any)
	visit = func(at string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				visit(at+"."+name, inner)
			}
		case []any:
			if len(v) > 0 {
				visit(at+"[]", v[0])
			}
		default:
			names = append(names, fmt.Sprintf("%s %T", at, v))
		}
	}
	var value any
	_ = json.Unmarshal(document, &value) // a document that is none has no names
	visit("", value)
	slices.Sort(names)
	return strings.Join(names, "\n")
}

// TestTheCorpusHasThePersonalities holds the corpus that is kept against the personalities.
func TestTheCorpusHasThePersonalities(t *testing.T) {
	var missing []string
	for _, document := range personalityDocuments(t) {
		if len(document) > 4<<10 {
			continue // a long list adds nothing
		}
		file := filepath.Join(corpus, fmt.Sprintf("%x", sha256.Sum256(document))[:16])
		if *isWritingCorpus {
			text := fmt.Sprintf("go test fuzz v1\nint(%d)\n[]byte(%q)\n", http.StatusNoContent, document)
			if err := os.MkdirAll(corpus, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, string(document))
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s lacks %d documents of the personalities, such as %s: go test ./controllers/hardware/redfish -run TheCorpus -args -write-corpus", corpus, len(missing), missing[0])
	}
}
