package leaderlease

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// leaseOf returns a Lease that was renewed some time before noon.
func leaseOf(holder string, seconds int32, ago time.Duration) *coordinationv1.Lease {
	at := metav1.NewMicroTime(noon.Add(-ago))
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at}}
}

func TestALeaseThatIsNotRenewedForLongerThanItsDurationIsAnOutage(t *testing.T) {
	const id = "ingot-manager-7f-x2x_0b9d2f3e-0000-4000-8000-000000000000"
	for _, c := range []struct {
		what  string
		lease *coordinationv1.Lease
		want  []string
	}{
		{"renewed", leaseOf(id, 15, 2*time.Second), nil},
		{"renewed late", leaseOf(id, 15, 15*time.Second), nil},
		{"held for longer", leaseOf(id, 60, 40*time.Second), nil},
		{"the manager's clock is ahead", leaseOf(id, 15, -time.Hour), nil},
		{"given back a moment ago", leaseOf("", 1, 3*time.Second), nil},
		{"killed", leaseOf(id, 15, 10*time.Minute), []string{
			"no ingot-manager works since 2026-11-20T11:50:00Z (10m)", "pod ingot-manager-7f-x2x, which did not give its Lease back", "kubectl get pods -n ingot-system",
		}},
		{"stopped", leaseOf("", 1, time.Hour), []string{"since 2026-11-20T11:00:00Z (60m)", "the last leader, which gave its Lease back", "ingot-system/ingot-manager"}},
		{"never renewed", &coordinationv1.Lease{}, []string{"was never renewed"}},
	} {
		got := Judge(DefaultNamespace, DefaultName, c.lease, noon)
		if (got == nil) != (c.want == nil) {
			t.Errorf("%s: %+v", c.what, got)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(got.Message, want) {
				t.Errorf("%s: %q lacks %q", c.what, got.Message, want)
			}
		}
	}
}

func TestAManagerWhoseClockIsLateIsNotDead(t *testing.T) {
	lease := leaseOf("pod_1", 15, 10*time.Minute)
	written := func(ago time.Duration, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(noon.Add(-ago))
		return metav1.ManagedFieldsEntry{Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	lease.ManagedFields = []metav1.ManagedFieldsEntry{written(2*time.Second, `{"f:spec":{"f:renewTime":{}}}`)}
	if got := Judge(DefaultNamespace, DefaultName, lease, noon); got != nil {
		t.Errorf("the API server saw a renewal two seconds ago: %+v", got)
	}
	// Somebody's label on the Lease of a dead manager renews nothing.
	lease.ManagedFields = []metav1.ManagedFieldsEntry{written(10*time.Minute, `{"f:spec":{"f:renewTime":{}}}`), written(time.Second, `{"f:metadata":{"f:labels":{}}}`)}
	if got := Judge(DefaultNamespace, DefaultName, lease, noon); got == nil {
		t.Error("a label counts as a renewal")
	}
}

// disabled adds that a manager without leader election was started some time before noon.
func disabled(lease *coordinationv1.Lease, ago time.Duration) *coordinationv1.Lease {
	lease.Annotations = map[string]string{AnnotationDisabled: noon.Add(-ago).Format(time.RFC3339)}
	return lease
}

func TestALeaseThatAManagerWithoutLeaderElectionFoundIsNoOutage(t *testing.T) {
	for _, c := range []struct {
		what                 string
		lease                *coordinationv1.Lease
		isDisabled, isOutage bool
	}{
		{"left by a manager before", disabled(leaseOf("pod_1", 15, time.Hour), 30*time.Minute), true, false},
		{"never renewed", disabled(&coordinationv1.Lease{}, time.Hour), true, false},
		{"leader election is on again, and its manager works", disabled(leaseOf("pod_1", 15, time.Second), time.Hour), false, false},
		{"leader election is on again, and its manager died", disabled(leaseOf("pod_1", 15, 10*time.Minute), time.Hour), false, true},
		{"not a time", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationDisabled: "yes"}}}, false, true},
	} {
		if since := DisabledSince(c.lease); (since != nil) != c.isDisabled {
			t.Errorf("%s: disabled since %v", c.what, since)
		}
		if o := Judge("ns", "lease", c.lease, noon); (o != nil) != c.isOutage {
			t.Errorf("%s: %+v", c.what, o)
		}
	}
}

func TestTheNewestLeaseIsTheOneOfThePresent(t *testing.T) {
	old, current := *leaseOf("old_1", 15, time.Hour), *leaseOf("current_1", 15, time.Second)
	without := *disabled(&coordinationv1.Lease{}, 10*time.Minute)
	ahead, never := *leaseOf("ahead_1", 15, -time.Hour), *disabled(&coordinationv1.Lease{}, -365*24*time.Hour)
	for _, leases := range [][]coordinationv1.Lease{{old, current, without}, {current, without, old, {}}, {current, ahead, never}, {ahead, never, current}} {
		if got := Newest(leases, noon); holder(got) != "current" {
			t.Errorf("%+v", got)
		}
	}
	if got := Newest([]coordinationv1.Lease{{}, old, without}, noon); DisabledSince(got) == nil {
		t.Errorf("%+v", got)
	}
	if Newest(nil, noon) != nil || Newest([]coordinationv1.Lease{ahead, never}, noon) != nil {
		t.Error("one of none of the present")
	}
}
