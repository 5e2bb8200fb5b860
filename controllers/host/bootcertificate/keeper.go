package bootcertificate

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/controllers/plan/bootca"
)

// checkInterval is the time between two checks. nextStepDelay is the time to the next check after an action or a conflict.
const (
	checkInterval = 10 * time.Second
	nextStepDelay = 500 * time.Millisecond
)

// Keeper issues the authority and the certificate in the replica that is the leader.
type Keeper struct {
	// Reader and Writer read and write Secrets without a cache.
	Reader client.Reader
	Writer client.Writer
	// Authorities and Served name the two Secrets.
	Authorities, Served client.ObjectKey
	// Names returns the host names and addresses under which servers ask for the boot service.
	Names func(context.Context) ([]string, error)
	// Clock tells the time.
	Clock func() time.Time
	// Random is the source of keys: crypto/rand.Reader.
	Random io.Reader
	// Times are the periods of authority and certificate.
	Times bootca.Times
	// Log records the actions and their failures.
	Log *slog.Logger
}

// NeedLeaderElection returns true, so that only one replica writes.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start keeps the Secrets until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		wait := checkInterval
		done, err := k.Step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			wait = nextStepDelay // another writer was first
		case err != nil:
			k.Log.Error("The boot service's certificate could not be kept", "err", err)
		case done.Action != bootca.Rest:
			k.Log.Info("The boot service's certificate", "action", string(done.Action), "why", done.Why)
			wait = nextStepDelay
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Step takes at most one action and returns the decision for it.
func (k *Keeper) Step(ctx context.Context) (bootca.Decision, error) {
	names, err := k.Names(ctx)
	if err != nil {
		return bootca.Decision{}, fmt.Errorf("find the names of the boot service: %w", err)
	}
	authorities, err := readSecret(ctx, k.Reader, k.Authorities)
	if err != nil {
		return bootca.Decision{}, err
	}
	served, err := readSecret(ctx, k.Reader, k.Served)
	if err != nil {
		return bootca.Decision{}, err
	}
	f := bootca.Facts{Now: k.Clock(), Names: names, Authorities: authoritiesOf(authorities), Served: servedOf(served), Times: k.Times}
	decided := bootca.Decide(f)
	if decided.Action == bootca.Rest {
		return decided, nil
	}
	nextAuthorities, nextServed, err := bootca.Do(decided.Action, f, k.Random)
	if err != nil {
		return decided, fmt.Errorf("%s: %w", decided.Action, err)
	}
	if decided.Action == bootca.Serve {
		return decided, writeSecret(ctx, k.Writer, served, dataOfServed(nextServed))
	}
	return decided, writeSecret(ctx, k.Writer, authorities, dataOfAuthorities(nextAuthorities))
}
