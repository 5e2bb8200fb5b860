package leasebook_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/controllers/hardware/netboot/leases"
	"github.com/ingot-dev/ingot/controllers/host/leasebook"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(management.Main(m, &server))
}

// site is a namespace with hosts and a clock.
type site struct {
	namespace string
	hosts     []string
	now       time.Time
}

func newSite(t *testing.T, hosts int) *site {
	s := &site{namespace: server.Namespace(t), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	for i := range hosts {
		s.hosts = append(s.hosts, fmt.Sprintf("52:54:00:00:00:%02x", i))
	}
	return s
}

// replica is the book of one boot service.
func (s *site) replica(c client.Client, last string) *leasebook.Book {
	return &leasebook.Book{
		APIReader: c, Writer: c, Namespace: s.namespace, Clock: func() time.Time { return s.now },
		Range: leases.Range{First: netip.MustParseAddr("10.20.0.100"), Last: netip.MustParseAddr(last)},
		Known: func(context.Context) ([]string, error) { return s.hosts, nil },
	}
}

func TestEveryReplicaLeasesTheSameAddresses(t *testing.T) {
	s := newSite(t, 20)
	books := []*leasebook.Book{s.replica(server.Client, "10.20.0.130"), s.replica(server.Client, "10.20.0.130"), s.replica(server.Client, "10.20.0.130")}
	var mu sync.Mutex
	given := map[string]map[netip.Addr]bool{}
	var group sync.WaitGroup
	for _, mac := range s.hosts {
		given[mac] = map[netip.Addr]bool{}
		for _, book := range books {
			group.Go(func() {
				address, err := book.AddressOf(t.Context(), mac)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				given[mac][address] = true
			})
		}
	}
	group.Wait()
	owner := map[netip.Addr]string{}
	for mac, addresses := range given {
		if len(addresses) != 1 {
			t.Errorf("%s has %v", mac, addresses)
		}
		for address := range addresses {
			if other, taken := owner[address]; taken {
				t.Errorf("%s and %s have %s", mac, other, address)
			}
			owner[address] = mac
		}
	}
}

func TestARackThatIsPoweredOnCostsOneWrite(t *testing.T) {
	s := newSite(t, 50)
	writes, isAway := 0, false
	withWatch, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	errAway := errors.New("the API server does not answer")
	counted := interceptor.NewClient(withWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if isAway {
				return errAway
			}
			return c.Get(ctx, key, o, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, options...)
		},
	})
	book := s.replica(counted, "10.20.0.200")
	var first []netip.Addr
	for _, mac := range s.hosts {
		address, err := book.AddressOf(t.Context(), mac)
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, address)
	}
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
	isAway, s.now = true, s.now.Add(time.Hour)
	for i, mac := range s.hosts {
		if address, err := book.AddressOf(t.Context(), mac); err != nil || address != first[i] {
			t.Errorf("while the API server is away %s has %s, before %s: %v", mac, address, first[i], err)
		}
	}
	if _, err := book.AddressOf(t.Context(), "52:54:00:00:01:00"); !errors.Is(err, errAway) {
		t.Errorf("a new host, while the API server is away: %v", err)
	}
}

func TestAFullRangeTakesTheAddressesOfHostsThatAreGone(t *testing.T) {
	s := newSite(t, 3)
	book := s.replica(server.Client, "10.20.0.101")
	for _, mac := range s.hosts[:2] {
		if _, err := book.AddressOf(t.Context(), mac); err != nil {
			t.Fatal(err)
		}
	}
	if address, err := book.AddressOf(t.Context(), s.hosts[2]); !errors.Is(err, leases.ErrFull) {
		t.Errorf("the third host of two addresses: %s, %v", address, err)
	}
	gone := s.hosts[0]
	s.hosts = slices.Delete(s.hosts, 0, 1)
	address, err := book.AddressOf(t.Context(), s.hosts[1])
	if err != nil {
		t.Fatal(err)
	}
	var stored corev1.ConfigMap
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: book.Name()}, &stored); err != nil {
		t.Fatal(err)
	}
	if len(stored.Data) != 2 || stored.Data["52-54-00-00-00-02"] != address.String() || stored.Data[gone] != "" {
		t.Errorf("stored: %v", stored.Data)
	}
}

func TestEntriesThatAPersonHasSpoiledAreMadeAgain(t *testing.T) {
	s := newSite(t, 4)
	book := s.replica(server.Client, "10.20.0.109")
	key := func(host int) string { return strings.ReplaceAll(s.hosts[host], ":", "-") }
	stored := &corev1.ConfigMap{Data: map[string]string{
		key(0): "ten dot something", key(1): "192.0.2.7", key(2): "10.20.0.105", key(3): "10.20.0.105",
	}}
	stored.Namespace, stored.Name = s.namespace, book.Name()
	if err := server.Client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	owners := map[netip.Addr]string{}
	for _, host := range s.hosts {
		address, err := book.AddressOf(t.Context(), host)
		if err != nil || !book.Range.HasAddress(address) || owners[address] != "" {
			t.Errorf("%s has %s (%v), expected one of %s that no other host has: %v", host, address, err, book.Range, owners)
		}
		owners[address] = host
	}
	if kept := netip.MustParseAddr("10.20.0.105"); owners[kept] != s.hosts[2] {
		t.Errorf("%s is with %q, expected it to stay with %s", kept, owners[kept], s.hosts[2])
	}
}
