package redfish_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
)

// kinds are all that an error of the port may be.
var kinds = []hardware.Kind{
	hardware.Unreachable, hardware.Unauthorized, hardware.Busy, hardware.NotFound, hardware.Invalid, hardware.Unsupported, hardware.Conflict,
}

// malformedBMC is a BMC with one resource whose response the test sets.
type malformedBMC struct {
	*fixture
	mu       sync.Mutex
	path     string
	status   int
	body     []byte
	requests int
}

func startMalformedBMC(t testing.TB) *malformedBMC {
	n := &malformedBMC{fixture: start(t, bmc.Personality{
		HGXBaseboard: true, Power: bmc.PowerRules{ActionInfo: true}, ETag: bmc.ETagRequired,
		Boot: bmc.BootRules{Settings: &bmc.SettingsRules{Name: "SD", Members: bmc.SettingsOverride}, Initial: bmc.Override{Enabled: "Continuous", Target: "Pxe"}},
	})}
	n.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.requests++
		path := strings.TrimRight(r.URL.Path, "/")
		if path != n.path || r.Method == http.MethodDelete {
			return false
		}
		w.WriteHeader(n.status)
		_, _ = w.Write(n.body)
		return true
	})
	return n
}

// paths are the resources that are mutated; the list does not depend on the run.
func (n *malformedBMC) paths() []string {
	return append(n.Paths(), bmc.PathSystem+"/ResetActionInfo", "/redfish/v1/SessionService/Sessions",
		bmc.PathSystem+"/Actions/ComputerSystem.Reset", "/redfish/v1/Managers/1/VirtualMedia/Cd")
}

// checkNoPanic makes every call of the port while the resource has a malformed response.
func (n *malformedBMC) checkNoPanic(t testing.TB, path string, status int, body []byte) {
	t.Helper()
	if status < 200 || status > 599 || status == http.StatusNoContent || status == http.StatusNotModified {
		status = http.StatusOK
	}
	n.mu.Lock()
	n.path, n.status, n.body, n.requests = path, status, body, 0
	n.mu.Unlock()
	n.clock.Advance(1 << 40) // ends idle sessions and forgets refusals
	n.client.EndIdleSessions(t.Context())
	tokens := n.Tokens()
	for name, call := range map[string]func() error{
		"Power":      func() error { _, err := n.bmc.PowerState(t.Context()); return err },
		"SetPower":   func() error { return n.bmc.SetPower(t.Context(), hardware.Restart) },
		"BootOnce":   func() error { return n.bmc.SetBootOnce(t.Context(), hardware.BootNetwork) },
		"BootAlways": func() error { return n.bmc.SetBootAlways(t.Context(), hardware.BootDisk) },
		"ClearBoot":  func() error { return n.bmc.ClearBoot(t.Context()) },
		"Media":      func() error { return n.bmc.SetVirtualMedia(t.Context(), "http://h/a/ingot-agent.iso") },
		"Inventory":  func() error { _, err := n.bmc.Inventory(t.Context()); return err },
	} {
		err := call()
		if err != nil && !slices.Contains(kinds, hardware.KindOf(err)) {
			t.Errorf("%s: %v has no kind", name, err)
		}
		if err != nil && len(err.Error()) > 4000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		noSecrets(t, err, append(append(tokens, n.Tokens()...), n.Endpoint().Password)...)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.requests > 6000 {
		t.Errorf("%d requests for seven calls", n.requests)
	}
	n.path = ""
}

func FuzzMalformedResponsesCauseNoPanic(f *testing.F) {
	n := startMalformedBMC(f)
	paths := n.paths()
	for i, path := range paths {
		if body, ok := n.Document(path); ok {
			f.Add(i, 200, body)
		}
		f.Add(i, 200, []byte("null"))
		f.Add(i, 200, []byte(`[{}]`))
		f.Add(i, 500, []byte(`{"error":{"code":"Base.1.0.InternalError","message":"x","@Message.ExtendedInfo":[{"MessageId":"."}]}}`))
	}
	f.Fuzz(func(t *testing.T, i, status int, body []byte) {
		n.checkNoPanic(t, paths[((i%len(paths))+len(paths))%len(paths)], status, body)
	})
}

func TestMutatedResponsesCauseNoPanic(t *testing.T) {
	n := startMalformedBMC(t)
	for _, path := range n.paths() {
		original, ok := n.Document(path)
		if !ok {
			original = []byte(`{"Id":"1"}`)
		}
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, uint64(len(path))))
			body, status := mutate(r, original), 200
			if r.IntN(4) == 0 {
				status = 200 + r.IntN(400)
			}
			n.checkNoPanic(t, path, status, body)
			if t.Failed() {
				t.Fatalf("at %s, seed %d, status %d, body %s", path, seed, status, body)
			}
		}
	}
}

// mutate changes a value somewhere in the document, or the text itself.
func mutate(r *rand.Rand, original []byte) []byte {
	var document any
	if r.IntN(4) == 0 || json.Unmarshal(original, &document) != nil {
		text := bytes.Clone(original)
		switch r.IntN(3) {
		case 0:
			return text[:r.IntN(len(text))]
		case 1:
			text[r.IntN(len(text))] = byte(r.IntN(256))
			return text
		default:
			return slices.Concat(text[:r.IntN(len(text))], original[r.IntN(len(original)):])
		}
	}
	text, err := json.Marshal(mutateValue(r, document))
	if err != nil {
		return original
	}
	return text
}

var oddValues = []any{nil, true, -1, 1e300, "", "null", "@elsewhere/x", "/redfish/v1/Systems", "0x", []any{}, []any{nil}, map[string]any{}, strings.Repeat("9", 5000)}

func mutateValue(r *rand.Rand, value any) any {
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if len(keys) > 0 && r.IntN(5) > 0 {
			key := keys[r.IntN(len(keys))]
			if r.IntN(6) == 0 {
				delete(v, key)
			} else {
				v[key] = mutateValue(r, v[key])
			}
			return v
		}
	case []any:
		if len(v) > 0 && r.IntN(3) > 0 {
			i := r.IntN(len(v))
			v[i] = mutateValue(r, v[i])
			return v
		}
	}
	return oddValues[r.IntN(len(oddValues))]
}

func TestACollectionThatLeadsBackToItselfEnds(t *testing.T) {
	n := startMalformedBMC(t)
	for _, path := range []string{"/redfish/v1/Systems", bmc.PathSystem + "/Processors"} {
		n.checkNoPanic(t, path, 200, fmt.Appendf(nil, `{"Members":[],"Members@odata.nextLink":%q}`, path))
	}
}
