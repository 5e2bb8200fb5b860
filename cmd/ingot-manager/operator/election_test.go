package operator

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/plan/leaderlease"
)

func TestAManagerWithoutLeaderElectionSaysSoOnItsLease(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	s := settings.Settings{Namespace: server.Namespace(t), LeaderElection: settings.LeaderElection{Enabled: true, Name: "mine"}}
	read := func() (*coordinationv1.Lease, error) {
		lease := &coordinationv1.Lease{}
		return lease, server.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "mine"}, lease)
	}
	if err := announceNoElection(t.Context(), server.Config, s, now); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); !apierrors.IsNotFound(err) {
		t.Errorf("with leader election: %v", err)
	}
	s.LeaderElection.Enabled = false
	// The second start finds the Lease of the first.
	for _, at := range []time.Time{now, now.Add(time.Minute)} {
		if err := announceNoElection(t.Context(), server.Config, s, at); err != nil {
			t.Fatal(err)
		}
		lease, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if since := leaderlease.DisabledSince(lease); since == nil || !since.Equal(at) || lease.Labels[leaderlease.Label] != leaderlease.LabelValue {
			t.Errorf("%+v", lease.ObjectMeta)
		}
	}
}
