package addresslease_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/sharedaddress"
	"github.com/ingot-dev/ingot/controllers/host/addresslease"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

var server *management.Server

// TestMain runs the tests in a network of their own, with a bridge that two machines are connected to.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if os.Geteuid() == 0 && !lab.IsInside() {
		lab.Main(m)
	}
	if lab.IsInside() {
		err := lab.MakeBridge()
		for i, name := range []string{"one", "two"} {
			err = errors.Join(err, lab.AddMachine(name, net.HardwareAddr{0x52, 0x54, 0, 0, 9, byte(i)}))
		}
		if err != nil {
			panic(err)
		}
	}
	os.Exit(management.Main(m, &server))
}

// machine is a machine with a process that wants the address.
type machine struct {
	*sharedaddress.Address
	frozen atomic.Bool
	// stuck means that the address cannot be removed.
	stuck atomic.Bool
	end   context.CancelFunc
	ended sync.WaitGroup
}

// Keep implements addresslease.Address. A process that is frozen does nothing more.
func (m *machine) Keep(until time.Time) error {
	if m.frozen.Load() {
		return errors.New("frozen")
	}
	return m.Address.Keep(until)
}

// Remove implements addresslease.Address.
func (m *machine) Remove() error {
	if m.frozen.Load() || m.stuck.Load() {
		return errors.New("frozen")
	}
	return m.Address.Remove()
}

// RoundTrip makes no request of a process that is frozen.
func (m *machine) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if m.frozen.Load() {
			return nil, errors.New("frozen")
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func start(t *testing.T, name, namespace string, isReady func() bool) *machine {
	t.Helper()
	m := &machine{Address: &sharedaddress.Address{Interface: name, Prefix: netip.MustParsePrefix("10.77.0.200/24"), Clock: time.Now}}
	cluster, err := server.Cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Wrap(m.wrap)
	ctx, cancel := context.WithCancel(t.Context())
	m.end = cancel
	holder := addresslease.New(addresslease.Options{
		Cluster: cluster, Namespace: namespace, Name: "ingot-boot-address", Identity: name, Address: m, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		Durations: addresslease.Durations{Lease: 6 * time.Second, Renew: 2 * time.Second, Retry: 200 * time.Millisecond, Keep: 3 * time.Second},
		IsReady:   isReady,
	})
	m.ended.Go(func() {
		if err := holder.Start(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	t.Cleanup(func() { cancel(); m.ended.Wait() })
	return m
}

func (m *machine) has(t *testing.T) bool {
	t.Helper()
	isHere, err := m.IsHere()
	if err != nil {
		t.Error(err)
	}
	return isHere
}

func always() bool { return true }

func TestOneMachineHasTheAddressAndNeverTwo(t *testing.T) {
	if !lab.IsInside() {
		t.Skip("needs root, to make a network of its own")
	}
	namespace := server.Namespace(t)
	var isReady atomic.Bool
	one := start(t, "one", namespace, always)
	waitFor(t, "one", one)
	two := start(t, "two", namespace, isReady.Load)
	isReady.Store(true)
	var watchers sync.WaitGroup
	done := make(chan struct{})
	watchers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			// The first is looked at again, because the address may have moved between the looks.
			if one.has(t) && two.has(t) && one.has(t) {
				t.Error("two machines have the address")
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	// The process with the address ends in order.
	one.end()
	one.ended.Wait()
	if one.has(t) {
		t.Error("a process that ended has left the address")
	}
	waitFor(t, "two", two)
	// The process with the address is frozen: it can neither remove the address nor renew the Lease.
	one = start(t, "one", namespace, always)
	two.frozen.Store(true)
	waitFor(t, "one", one)
	if two.has(t) {
		t.Error("the frozen machine has the address still")
	}
	close(done)
	watchers.Wait()
}

func TestALeaseIsNotReleasedWhileTheAddressIsHere(t *testing.T) {
	if !lab.IsInside() {
		t.Skip("needs root, to make a network of its own")
	}
	namespace := server.Namespace(t)
	one := start(t, "one", namespace, always)
	waitFor(t, "one", one)
	one.stuck.Store(true)
	one.end()
	one.ended.Wait()
	var lease coordinationv1.Lease
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "ingot-boot-address"}, &lease); err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != "one" {
		t.Errorf("the Lease is released: %+v", lease.Spec)
	}
}

func TestAMachineThatCannotServeDoesNotTakeTheAddress(t *testing.T) {
	if !lab.IsInside() {
		t.Skip("needs root, to make a network of its own")
	}
	asked := make(chan struct{}, 10)
	one := start(t, "one", server.Namespace(t), func() bool { asked <- struct{}{}; return false })
	<-asked
	<-asked
	if one.has(t) {
		t.Error("it has the address")
	}
}

func waitFor(t *testing.T, name string, m *machine) {
	t.Helper()
	for !m.has(t) {
		select {
		case <-t.Context().Done():
			t.Fatalf("machine %s does not get the address", name)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
