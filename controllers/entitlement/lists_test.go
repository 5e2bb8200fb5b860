package entitlement

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

// TestSteadyLooksShareTheirLists reaches the cluster as the controller does, each time by another Access.
func TestSteadyLooksShareTheirLists(t *testing.T) {
	tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard()})
	server.Run(t, func(mgr ctrl.Manager) error { return mgr.Add(tenants) })
	key := types.NamespacedName{Namespace: "default", Name: "shared"}
	if err := tenants.Set(t.Context(), key, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	access := func() client.Client {
		var a *tenantaccess.Access
		management.Eventually(t, "the cluster can be used", func() bool {
			found, err := tenants.For(key)
			a = found
			return err == nil
		})
		return a.Client
	}
	var l lists
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	read := 0
	for _, c := range []struct {
		name     string
		at       time.Duration
		isFresh  bool
		isWriter bool
		want     int
	}{
		{"the first look", 0, false, false, 1},
		{"the next tenant's", time.Second, false, false, 1},
		{"one after a change", time.Second, true, false, 2},
		{"one after a write", 2 * time.Second, false, true, 3},
		{"one a while later", 2*time.Second + listAge - 1, false, false, 3},
		{"one when the list is old", 2*time.Second + listAge, false, false, 4},
	} {
		if c.isWriter {
			l.noteWrite(access())
		}
		got, err := l.get(access(), "Namespace", now.Add(c.at), c.isFresh, func() (any, error) { read++; return read, nil })
		if err != nil || got != c.want {
			t.Errorf("%s: list %v, expected list %d, %v", c.name, got, c.want, err)
		}
	}
	// A write while a list is read: what was read before may lack it.
	if _, err := l.get(access(), "Namespace", now, true, func() (any, error) { l.noteWrite(access()); read++; return read, nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := l.get(access(), "Namespace", now, false, func() (any, error) { read++; return read, nil }); err != nil || got != 6 {
		t.Errorf("after a write that came while the list was read: list %v, expected list 6, %v", got, err)
	}
}
