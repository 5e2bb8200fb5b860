package management

import (
	"context"
	"sync"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ingot-dev/ingot/controllers/readyourwrites"
)

// Run runs controllers until stop is called or the test ends. setup registers them.
func (s *Server) Run(t *testing.T, setup func(ctrl.Manager) error) (stop func()) {
	t.Helper()
	again := true
	mgr, err := ctrl.NewManager(s.Config, ctrl.Options{
		Scheme: s.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, NewClient: readyourwrites.NewClient,
		// Controllers of one name run in several tests, one after the other.
		Controller: config.Controller{SkipNameValidation: &again},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controllers: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Eventually polls for up to half a minute: what is awaited happens in other goroutines and in the API server.
func Eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
