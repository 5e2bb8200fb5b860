package leasebook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/leases"
)

const (
	// freshness is how long what was read is used for hosts that have an address in it. Within it another replica may have given the address of a host
	// that was removed, and is registered again, to another one.
	freshness = 30 * time.Second
	// maxConflicts is how often a write is tried against those of other replicas.
	maxConflicts = 10
)

// Book is the addresses of one range. It is safe for concurrent use.
type Book struct {
	// APIReader and Writer read and write the ConfigMap without a cache.
	APIReader client.Reader
	Writer    client.Writer
	// Namespace is the manager's own.
	Namespace string
	// Range is what addresses are taken from.
	Range leases.Range
	// Known returns the MAC addresses of all known hosts.
	Known func(context.Context) ([]string, error)
	// Clock returns the current time.
	Clock func() time.Time

	mu sync.Mutex
	// assigned is what was read last, by MAC address; readAt is when.
	assigned map[string]netip.Addr
	readAt   time.Time
}

// Name is the name of the ConfigMap.
func (b *Book) Name() string { return "ingot-leases-" + b.Range.String() }

// AddressOf returns the address of the host. It fails with leases.ErrFull where no address is left for it.
func (b *Book) AddressOf(ctx context.Context, mac string) (netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if address, found := b.assigned[mac]; found && b.Clock().Sub(b.readAt) < freshness {
		return address, nil
	}
	err := b.update(ctx, mac)
	address, found := b.assigned[mac]
	switch {
	case found && !errors.Is(err, leases.ErrFull):
		return address, nil // The address stays with the host also while the API server does not answer.
	case err != nil:
		return netip.Addr{}, fmt.Errorf("the address of %s: ConfigMap %s/%s: %w", mac, b.Namespace, b.Name(), err)
	}
	return netip.Addr{}, fmt.Errorf("%w: %s", leases.ErrFull, b.Range)
}

// update reads what is assigned, and assigns addresses to mac and to all known hosts that have none.
func (b *Book) update(ctx context.Context, mac string) error {
	for range maxConflicts {
		stored, exists, err := b.read(ctx)
		if err != nil {
			return err
		}
		assigned := b.parse(stored.Data)
		next, err := b.assign(ctx, assigned, mac)
		if err != nil {
			return err
		}
		if !maps.Equal(assigned, next) {
			stored.Data = format(next)
			if err = b.write(ctx, stored, exists); apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
				continue
			}
			if err != nil {
				return err
			}
		}
		b.assigned, b.readAt = next, b.Clock()
		return nil
	}
	return fmt.Errorf("changed by others %d times meanwhile", maxConflicts)
}

func (b *Book) read(ctx context.Context) (*corev1.ConfigMap, bool, error) {
	stored := &corev1.ConfigMap{}
	err := b.APIReader.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Name()}, stored)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name()}}, false, nil
	}
	return stored, true, err
}

func (b *Book) write(ctx context.Context, stored *corev1.ConfigMap, exists bool) error {
	if exists {
		return b.Writer.Update(ctx, stored)
	}
	return b.Writer.Create(ctx, stored)
}

// assign returns assigned with addresses for mac first, and then for the other known hosts as far as the range has any.
func (b *Book) assign(ctx context.Context, assigned map[string]netip.Addr, mac string) (map[string]netip.Addr, error) {
	if _, found := assigned[mac]; found {
		return assigned, nil
	}
	known, err := b.Known(ctx)
	if err != nil {
		return nil, err
	}
	isKnown := make(map[string]bool, len(known))
	for _, other := range known {
		isKnown[other] = true
	}
	for _, other := range append([]string{mac}, slices.Sorted(slices.Values(known))...) {
		next, err := leases.Assign(assigned, b.Range, other, func(m string) bool { return isKnown[m] || m == mac })
		if errors.Is(err, leases.ErrFull) && other != mac {
			break // It matters when this host asks.
		}
		if err != nil {
			return nil, err
		}
		assigned = next
	}
	return assigned, nil
}

// parse reads the ConfigMap. An entry that a person has spoiled is left out, and its host gets an address again: text that is no address, an address
// outside the range, and one that another host has, which the host with the smaller MAC address keeps.
func (b *Book) parse(data map[string]string) map[string]netip.Addr {
	out := make(map[string]netip.Addr, len(data))
	isTaken := make(map[netip.Addr]bool, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		address, err := netip.ParseAddr(data[key])
		if err != nil || !b.Range.HasAddress(address) || isTaken[address] {
			continue
		}
		out[strings.ReplaceAll(key, "-", ":")], isTaken[address] = address, true
	}
	return out
}

// format writes a colon as a hyphen, because a key of a ConfigMap has none.
func format(assigned map[string]netip.Addr) map[string]string {
	out := make(map[string]string, len(assigned))
	for mac, address := range assigned {
		out[strings.ReplaceAll(mac, ":", "-")] = address.String()
	}
	return out
}
