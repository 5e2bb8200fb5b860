package leaderlease

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// The default names of the Lease, which are those of config/manager.
const (
	DefaultNamespace = "ingot-system"
	DefaultName      = "ingot-manager"
)

// Label and LabelValue are on the Lease of every manager, so that one whose namespace or name was set is found.
const (
	Label      = "app.kubernetes.io/name"
	LabelValue = "ingot-manager"
)

// AnnotationDisabled is on the Lease of a manager that was started with leaderElection.enabled: false. Its value is the time of the start. Such a
// manager renews nothing. Without it: a manager with leader election left its Lease, and the one that works now is reported as dead.
const AnnotationDisabled = "ingot.dev/leader-election-disabled-at"

// shortestDuration is the duration that the manager's leader election asks for (controller-runtime's default). A leader that ends in order
// leaves a Lease of one second, and a standby looks at it every two seconds. Without this bound: each hand-over is reported as an outage.
const shortestDuration = 15 * time.Second

// clockDifference is how far the clock of a manager may be ahead of the API server's where its Lease is not the one that was asked for.
const clockDifference = time.Minute

// Outage says that no manager renews the Lease.
type Outage struct {
	// Since is the last renewal; nil: the Lease has never been renewed.
	Since *time.Time
	// Holder is the pod that held the Lease last; empty: the last one gave it back, or there was none.
	Holder string
	// Message says this for a person, with what to do.
	Message string
}

// DisabledSince returns when a manager without leader election was started, where no manager has renewed the Lease since; else nil. Whether that
// manager works is not known then.
func DisabledSince(lease *coordinationv1.Lease) *time.Time {
	at, err := time.Parse(time.RFC3339, lease.Annotations[AnnotationDisabled])
	if last := lastRenewal(lease); err != nil || last != nil && last.After(at) {
		return nil
	}
	return &at
}

// Newest returns the Lease that tells most of the present: the one that was renewed last, or whose manager without leader election was started
// last. One with a time to come says nothing of the present, because everybody may write that into a Lease of his own. Newest returns nil where there
// is none.
func Newest(leases []coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	var newest *coordinationv1.Lease
	var last time.Time
	for i := range leases {
		at := DisabledSince(&leases[i])
		if at == nil {
			at = lastRenewal(&leases[i])
		}
		if at == nil {
			at = &time.Time{}
		}
		if at.Sub(now) > clockDifference {
			continue
		}
		if newest == nil || at.After(last) {
			newest, last = &leases[i], *at
		}
	}
	return newest
}

// Judge returns the outage that a Lease shows at a time of the API server's clock, or nil when a manager has renewed it in time or works without
// leader election.
func Judge(namespace, name string, lease *coordinationv1.Lease, now time.Time) *Outage {
	look := fmt.Sprintf("; look at kubectl get pods -n %s, and at the log of one that runs", namespace)
	const effect = "nothing is installed, judged, rolled or released"
	if DisabledSince(lease) != nil {
		return nil
	}
	at := lastRenewal(lease)
	if at == nil {
		return &Outage{Message: fmt.Sprintf("the Lease %s/%s of ingot-manager was never renewed, so %s%s", namespace, name, effect, look)}
	}
	if now.Sub(*at) <= leaseDuration(lease) {
		return nil
	}
	o := &Outage{Since: at, Holder: holder(lease)}
	last := "the last leader, which gave its Lease back"
	if o.Holder != "" {
		last = "the last leader, pod " + o.Holder + ", which did not give its Lease back"
	}
	o.Message = fmt.Sprintf("no ingot-manager works since %s (%s): %s; %s last renewed the Lease %s/%s then%s",
		at.UTC().Format(time.RFC3339), duration.HumanDuration(now.Sub(*at)), effect, last, namespace, name, look)
	return o
}

// leaseDuration is how long a Lease may go without a renewal.
func leaseDuration(lease *coordinationv1.Lease) time.Duration {
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		return max(shortestDuration, time.Duration(*s)*time.Second)
	}
	return shortestDuration
}

// lastRenewal returns the later of two times: the renewal as the manager's clock has it, and the write of it as the API server's clock does.
// Without the second: a manager whose clock is late by more than the Lease's duration is reported as dead while it works.
func lastRenewal(lease *coordinationv1.Lease) *time.Time {
	var last *time.Time
	if at := lease.Spec.RenewTime; at != nil && !at.IsZero() {
		last = &at.Time
	}
	for _, f := range lease.ManagedFields {
		if f.Time == nil || f.FieldsV1 == nil || !bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:renewTime"`)) {
			continue
		}
		if last == nil || f.Time.After(*last) {
			last = &f.Time.Time
		}
	}
	return last
}

// holder returns the name of the pod that holds the Lease. controller-runtime joins it with a random part: NAME_UUID.
func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	id := *lease.Spec.HolderIdentity
	if i := strings.LastIndexByte(id, '_'); i > 0 {
		return id[:i]
	}
	return id
}
