package serverclock

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// keepInterval is how often the Lease is written.
	keepInterval = time.Minute
	// MaxBreak is how long no manager may have written the Lease for the next one to go on: a restart takes less.
	MaxBreak = 5 * time.Minute
)

// ReasonClocksDiffer is the reason of the event on the Lease when two clocks differ.
const ReasonClocksDiffer = "ClocksDiffer"

// AnnotationGrants on the Lease has what Memory saves.
const AnnotationGrants = "ingot.dev/grants"

// Memory is what a manager must not forget when it is restarted.
type Memory interface {
	// Save returns it as text; empty: there is nothing.
	Save() (string, error)
	// Restore takes over what was saved.
	Restore(text string) error
}

// Keeper keeps in a Lease since when the clock is certain: spec.acquireTime is that, and spec.renewTime is when it was written. An annotation has what was granted
// within the last hour. It runs while its manager leads.
type Keeper struct {
	Clock *Clock
	// Reader and Writer read and write the Lease without a cache.
	Reader client.Reader
	Writer client.Writer
	// Lease names it. It is no Lease of a leader election.
	Lease    client.ObjectKey
	Recorder events.EventRecorder
	// Grants is what was granted within the last hour, which the Lease keeps too.
	Grants Memory
	Log    *slog.Logger

	// lease is the Lease as this manager wrote it last; nil: it is to be read.
	lease *coordinationv1.Lease
	// isResumed says that the Lease of the last manager was read.
	isResumed bool
	// problem is the problem that was told last.
	problem string
}

// NeedLeaderElection returns true: one manager judges.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start goes on where the last manager was, and then writes the Lease until the context ends. What fails is tried again.
func (k *Keeper) Start(ctx context.Context) error {
	ticker := time.NewTicker(keepInterval)
	defer ticker.Stop()
	for {
		if err := k.keep(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("What is certain about the time is not kept over a restart", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// keep writes the Lease, and reads it before the first time and after a failure.
func (k *Keeper) keep(ctx context.Context) error {
	k.tell()
	lease := k.lease
	k.lease = nil
	if lease == nil {
		var err error
		if lease, err = k.read(ctx); err != nil {
			return err
		}
	}
	if !k.isResumed {
		k.resume(lease)
		k.isResumed = true
		if err := k.Grants.Restore(lease.Annotations[AnnotationGrants]); err != nil {
			k.Log.Warn("What was done within the last hour is not known", "err", err)
		}
	}
	if err := k.write(ctx, lease); err != nil {
		return err
	}
	k.lease = lease
	return nil
}

// read returns the Lease. It has no resource version where there is none.
func (k *Keeper) read(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := k.Reader.Get(ctx, k.Lease, lease)
	if apierrors.IsNotFound(err) {
		return k.emptyLease(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Lease %s: %w", k.Lease, err)
	}
	return lease, nil
}

// emptyLease returns the Lease as it is before it is made.
func (k *Keeper) emptyLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: k.Lease.Namespace, Name: k.Lease.Name}}
}

// resume takes over what the last manager was certain of, where it wrote that a moment ago. A time to come was written by a clock that was wrong.
func (k *Keeper) resume(lease *coordinationv1.Lease) {
	since, written := lease.Spec.AcquireTime, lease.Spec.RenewTime
	if since == nil || written == nil || since.After(written.Time) {
		return
	}
	if age := k.Clock.Now().Sub(written.Time); age >= -MaxDifference && age <= MaxBreak {
		k.Clock.Resume(since.Time)
	}
}

// write writes the Lease.
func (k *Keeper) write(ctx context.Context, lease *coordinationv1.Lease) error {
	w := k.Clock.Watched()
	since, now := metav1.NewMicroTime(w.Since), metav1.NewMicroTime(w.Now)
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &since, &now
	granted, err := k.Grants.Save()
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, AnnotationGrants, granted)
	if lease.ResourceVersion == "" {
		err = k.Writer.Create(ctx, lease)
	} else {
		err = k.Writer.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("write Lease %s: %w", k.Lease, err)
	}
	return nil
}

// tell logs that clocks differ, or agree again, and adds an event to the Lease, once each.
func (k *Keeper) tell() {
	problem := k.Clock.Problem()
	before := k.problem
	k.problem = problem
	switch {
	case problem == "" && before != "":
		k.Log.Info("The clocks agree again")
	case problem != "" && before == "":
		k.Log.Error("Clocks differ", "problem", problem)
		k.Recorder.Eventf(k.emptyLease(), nil, corev1.EventTypeWarning, ReasonClocksDiffer, "Keep", "%s", problem)
	}
}
