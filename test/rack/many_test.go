package rack_test

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/test/rack"
)

// TestManyServersAreCheap measures what a large rack costs: INGOT_MANY_SERVERS=1000 go test -v -run Many ./test/rack.
func TestManyServersAreCheap(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("INGOT_MANY_SERVERS"))
	if err != nil {
		t.Skip("INGOT_MANY_SERVERS is not set")
	}
	c := newTenant(t)
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	r := newRig(t, count, func(options *rack.Options) { options.Log = nil })
	// This many share two cores: a step takes as long as it takes.
	r.installer = direct.New(direct.Options{BMCs: r.client, Store: r.store})
	t.Logf("%d servers listen after %s, %d goroutines", count, time.Since(began), runtime.NumGoroutine())
	token := c.token("cccccc")
	began = time.Now()
	var wg sync.WaitGroup
	limit := make(chan struct{}, 32)
	for i, s := range r.rack.Servers() {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			name := "many-" + strconv.Itoa(i)
			r := *r
			if status := r.install(s, drive(name, c.userData(name, token))); status.State != hardware.AttemptSucceeded {
				t.Errorf("%s: %+v", name, status)
			}
		})
	}
	wg.Wait()
	t.Logf("all installed after %s", time.Since(began))
	for i := range count {
		c.awaitNode("the node is ready", "many-"+strconv.Itoa(i), ready)
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("all ready after %s, %d goroutines, %d MiB heap, %d MiB from the system", time.Since(began), runtime.NumGoroutine(), (after.HeapAlloc-before.HeapAlloc)>>20, after.Sys>>20)
}
