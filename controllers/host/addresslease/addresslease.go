// Package addresslease has one of several processes keep the address that servers boot from: the one that holds a Lease.
//
// Two processes never have the address at the same time. Each renewal of the Lease gives the address a lifetime that ends before anybody else may
// take the Lease, and a process that ends in order removes the address before it releases the Lease. While the API server does not answer,
// nobody has the address: the boot service could answer no server then either.
package addresslease

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Durations are the times of the Lease.
type Durations struct {
	// Lease is when another process may take the Lease, after the last renewal that it saw. It is the same for all processes.
	Lease time.Duration
	// Renew is when a process gives up that cannot renew it, and Retry how often it tries.
	Renew, Retry time.Duration
	// Keep is how long a renewal keeps the address. It is less than Lease by three seconds or more, because the kernel counts whole seconds and
	// removes an address late.
	Keep time.Duration
}

// Usual are the times that processes have.
var Usual = Durations{Lease: 15 * time.Second, Renew: 8 * time.Second, Retry: 2 * time.Second, Keep: 11 * time.Second}

// readyPeriod is how often a process that cannot serve yet looks again.
const readyPeriod = time.Second

// Address is the address on this machine.
type Address interface {
	// Prepare removes what an earlier process has left, or refuses to begin.
	Prepare() error
	// Keep adds the address, or prolongs it, until the time, when it vanishes by itself.
	Keep(until time.Time) error
	// Remove removes the address.
	Remove() error
}

// Options configure a Holder.
type Options struct {
	Cluster         *rest.Config
	Namespace, Name string
	// Identity names this process among all that want the Lease.
	Identity  string
	Durations Durations
	Address   Address
	// IsReady reports whether this process can answer servers. One that cannot does not want the address.
	IsReady func() bool
	Clock   func() time.Time
	Log     *slog.Logger
}

// Holder wants the Lease and keeps the address while it has it.
type Holder struct{ options Options }

// New returns a Holder.
func New(options Options) *Holder { return &Holder{options} }

// NeedLeaderElection returns false: the address has a Lease of its own.
func (h *Holder) NeedLeaderElection() bool { return false }

// Start keeps the address whenever this process holds the Lease, until the context ends.
func (h *Holder) Start(ctx context.Context) error {
	if err := h.options.Address.Prepare(); err != nil {
		return fmt.Errorf("boot.network.sharedAddress: %w", err)
	}
	cluster := rest.CopyConfig(h.options.Cluster)
	cluster.Timeout = h.options.Durations.Renew / 2
	client, err := coordination.NewForConfig(cluster)
	if err != nil {
		return err
	}
	lock := &addressLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: h.options.Namespace, Name: h.options.Name}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: h.options.Identity},
		},
		address: h.options.Address, clock: h.options.Clock, keep: h.options.Durations.Keep,
	}
	times := h.options.Durations
	for h.hasBecomeReady(ctx) {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: times.Lease, RenewDeadline: times.Renew, RetryPeriod: times.Retry, ReleaseOnCancel: true, Name: "boot address",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { h.options.Log.Info("This replica has the boot service's address") },
				OnStoppedLeading: h.remove,
			},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
	}
	return nil
}

// remove removes the address after the Lease is lost. Where that fails the kernel removes the address before anybody else may have it.
func (h *Holder) remove() {
	if err := h.options.Address.Remove(); err != nil {
		h.options.Log.Warn("The boot service's address is left to expire", "err", err)
		return
	}
	h.options.Log.Info("This replica has not the boot service's address")
}

// hasBecomeReady waits until this process can answer servers. It is false when the context ends before.
func (h *Holder) hasBecomeReady(ctx context.Context) bool {
	ticker := time.NewTicker(readyPeriod)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if h.options.IsReady() {
			return true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	return false
}

// addressLock is a Lease whose renewals prolong the address.
type addressLock struct {
	resourcelock.Interface
	address Address
	clock   func() time.Time
	keep    time.Duration
}

// Create implements resourcelock.Interface.
func (l *addressLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *addressLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write writes the Lease. The address is removed before the Lease is released, and prolonged after it was renewed.
//
// The time counts from the beginning of the request. Without it: the API server takes the renewal at once and answers seconds later, the address
// outlives the Lease by these seconds, and another machine has it too.
func (l *addressLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	isOurs := record.HolderIdentity == l.Identity()
	if !isOurs {
		if err := l.address.Remove(); err != nil {
			return fmt.Errorf("the Lease is not released but left to expire, because the address is still here: %w", err)
		}
	}
	began := l.clock()
	if err := write(ctx, record); err != nil || !isOurs {
		return err
	}
	return l.address.Keep(began.Add(l.keep))
}
