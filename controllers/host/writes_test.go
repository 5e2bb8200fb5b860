package host_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// writes counts what a process writes, by kind.
type writes struct {
	// underWay is held for reading while a write is made: what a test has seen the effect of is counted.
	underWay sync.RWMutex

	mu    sync.Mutex
	count map[string]int
	log   []string
	// refusal is the answer to every apply; nil: it is made.
	refusal error
}

// note makes the write and counts it. One that was refused since others were faster is none.
func (w *writes) note(kind string, o client.Object, patch client.Patch, write func() error) error {
	w.underWay.RLock()
	defer w.underWay.RUnlock()
	data, dataErr := patch.Data(o)
	if err := write(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count == nil {
		w.count = map[string]int{}
	}
	name := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", o), "*"), "v1alpha1.") + kind
	w.count[name]++
	w.log = append(w.log, fmt.Sprintf("%s %s", name, data))
	return dataErr
}

func (w *writes) reset() {
	w.underWay.Lock()
	defer w.underWay.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.log = nil, nil
}

func (w *writes) counted() (map[string]int, []string) {
	w.underWay.Lock()
	defer w.underWay.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.count), w.log
}

// counting is a client whose writes are counted.
type counting struct {
	client.Client
	writes *writes
}

func (c counting) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.writes.note("", o, patch, func() error { return c.Client.Patch(ctx, o, patch, options...) })
}

func (c counting) Apply(ctx context.Context, o apiruntime.ApplyConfiguration, options ...client.ApplyOption) error {
	if c.writes.refusal != nil {
		return c.writes.refusal
	}
	c.writes.underWay.RLock()
	defer c.writes.underWay.RUnlock()
	err := c.Client.Apply(ctx, o, options...)
	if err == nil {
		c.writes.mu.Lock()
		defer c.writes.mu.Unlock()
		if c.writes.count == nil {
			c.writes.count = map[string]int{}
		}
		c.writes.count["applied"]++
		c.writes.log = append(c.writes.log, fmt.Sprintf("applied %+v", o))
	}
	return err
}

func (c counting) Status() client.SubResourceWriter {
	return countingStatus{c.Client.Status(), c.writes}
}

type countingStatus struct {
	client.SubResourceWriter
	writes *writes
}

func (c countingStatus) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return c.writes.note("/status", o, patch, func() error { return c.SubResourceWriter.Patch(ctx, o, patch, options...) })
}

// TestAnInstallationCostsFewWrites counts those of the host controller, the installer and the boot service together, in an
// installation that is over before its progress is worth a write: of HostRecord.status the intent, the power-on, the boot, the
// request for the kernel, the agent's registration with its key and what it found, its wait for the config drive, its result, and the outcome; of BareMetalHost.status provisioning and provisioned. HardwareData is
// applied once, because an agent looks at the server for the first time; the next installation finds the same.
func TestAnInstallationCostsFewWrites(t *testing.T) {
	r := newRig(t, 1)
	s := r.rack.Servers()[0]
	r.available(s)
	r.stop()
	r.progress = 10 * time.Second
	r.start()
	r.writes.reset()
	r.claim(s, "m1", 1, v1alpha1.EraseMetadata)
	r.await(s, "it is provisioned", inState(metal3.StateProvisioned))
	management.Eventually(t, "the answer to its last write is there", func() bool {
		got, _ := r.writes.counted()
		return got["BareMetalHost/status"] > 1
	})
	r.stop()
	got, log := r.writes.counted()
	want := map[string]int{"HostRecord/status": 8, "BareMetalHost/status": 2, "applied": 1}
	if !maps.Equal(got, want) {
		t.Errorf("writes %v, expected %v:\n%s", got, want, strings.Join(log, "\n"))
	}
}
