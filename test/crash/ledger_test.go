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
	// installs and erases are how often an agent began to write or to erase, by server.
	installs, erases map[string]int
}

func newLedger() *ledger { return &ledger{installs: map[string]int{}, erases: map[string]int{}} }

func (l *ledger) onStep(server *rack.Server, step rack.Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch step {
	case rack.StepWriting:
		l.installs[server.Name()]++
	case rack.StepErasing:
		l.erases[server.Name()]++
	}
}

// begin forgets what was before.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.installs)
	clear(l.erases)
}

func (l *ledger) count() (installs, erases map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.installs), maps.Clone(l.erases)
}

// claimed lists the hosts that the requests claimed, by the uid of the claimant.
func claimed(requests []relay.Request) map[string][]string {
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
