package crash

import (
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/ingot-dev/ingot/test/crash/relay"
	"github.com/ingot-dev/ingot/test/rack"
)

// ledger counts what the servers' agents did.
type ledger struct {
	mu sync.Mutex
	// installs is how often an agent began to write, by server.
	installs map[string]int
}

func newLedger() *ledger { return &ledger{installs: map[string]int{}} }

func (l *ledger) onStep(server *rack.Server, step rack.Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if step == rack.StepWriting {
		l.installs[server.Name()]++
	}
}

// begin forgets what was before.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.installs)
}

func (l *ledger) count() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.installs)
}

// claimsByUID lists the hosts that the requests claimed, by the uid of the claimant.
func claimsByUID(requests []relay.Request) map[string][]string {
	out := map[string][]string{}
	for _, r := range requests {
		if r.Method != http.MethodPatch || !strings.Contains(r.Path, "/baremetalhosts/") || r.Status/100 != 2 {
			continue
		}
		var patch struct {
			Spec struct {
				ConsumerRef *struct{ UID string }
			}
		}
		if json.Unmarshal(r.Body, &patch) != nil || patch.Spec.ConsumerRef == nil || patch.Spec.ConsumerRef.UID == "" {
			continue
		}
		uid, host := patch.Spec.ConsumerRef.UID, path.Base(r.Path)
		if !slices.Contains(out[uid], host) {
			out[uid] = append(out[uid], host)
		}
	}
	return out
}
