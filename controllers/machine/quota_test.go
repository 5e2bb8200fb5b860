package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// addQuota limits the Machines of the rig's NodeType.
func (r *rig) addQuota(limit int32) {
	r.t.Helper()
	server.Create(r.t, &v1alpha1.NodeQuota{ObjectMeta: r.meta(v1alpha1.NodeQuotaName), Spec: v1alpha1.NodeQuotaSpec{
		Machines: []v1alpha1.NodeTypeLimit{{NodeType: r.namespace, Limit: limit}}, GPUs: ptr.To(int32(100)),
	}})
}

func (r *rig) raiseQuota(limit int32) {
	r.t.Helper()
	var q v1alpha1.NodeQuota
	if err := server.Client.Get(r.t.Context(), r.key(v1alpha1.NodeQuotaName), &q); err != nil {
		r.t.Fatal(err)
	}
	before := q.DeepCopy()
	q.Spec.Machines[0].Limit = limit
	if err := server.Client.Patch(r.t.Context(), &q, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// claimedHosts returns the names of the Machines that hosts name, and how many Machines say that they wait for the quota.
func (r *rig) claimedHosts() (claimed map[string]bool, waiting int) {
	r.t.Helper()
	var hosts metal3.BareMetalHostList
	if err := server.Client.List(r.t.Context(), &hosts, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	claimed = map[string]bool{}
	for i := range hosts.Items {
		if ref := hosts.Items[i].Spec.ConsumerRef; ref != nil {
			claimed[ref.Name] = true
		}
	}
	var machines v1alpha1.MachineList
	if err := server.Client.List(r.t.Context(), &machines, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	for i := range machines.Items {
		if c := r.condition(machines.Items[i].Name, v1alpha1.ConditionClaimed); c.Reason == v1alpha1.ReasonQuotaExceeded {
			waiting++
		}
	}
	return claimed, waiting
}

// addMachineLater adds a Machine that is younger than another: the API server keeps whole seconds, and of two Machines of one second either goes first.
func (r *rig) addMachineLater(name, older string) {
	r.t.Helper()
	after := r.machine(older).CreationTimestamp.Add(time.Second)
	management.Eventually(r.t, "another second begins", func() bool { return time.Now().After(after) })
	r.addMachine(name)
}

// TestNoMoreHostsAreClaimedThanTheQuotaAllows has two managers at work at the same time, which is the case for a moment when the lease changes hands.
func TestNoMoreHostsAreClaimedThanTheQuotaAllows(t *testing.T) {
	r := newRig(t, 8)
	r.addQuota(3)
	r.start()
	r.start()
	for i := range 8 {
		r.addMachine(fmt.Sprintf("m-%d", i))
	}
	await := func(limit int) {
		t.Helper()
		management.Eventually(t, fmt.Sprintf("%d Machines have a host and the others wait", limit), func() bool {
			claimed, waiting := r.claimedHosts()
			if len(claimed) > limit {
				t.Fatalf("the quota is %d, and hosts are claimed by %v", limit, claimed)
			}
			return len(claimed) == limit && waiting == 8-limit
		})
	}
	await(3)
	var q v1alpha1.NodeQuota
	next := ""
	management.Eventually(t, "the NodeQuota says which Machine is the next", func() bool {
		if err := server.Client.Get(t.Context(), r.key(v1alpha1.NodeQuotaName), &q); err != nil {
			t.Fatal(err)
		}
		next = q.Status.Machines[0].Next
		return q.Status.Waiting == 5 && next != ""
	})
	claimed, _ := r.claimedHosts()
	for i := range 8 {
		name := fmt.Sprintf("m-%d", i)
		if claimed[name] {
			continue
		}
		want := fmt.Sprintf("NodeQuota %s/default: 3 of 3 Machines of NodeType %s are used; of those that wait, %s is the next; raise", r.namespace, r.namespace, next)
		if name == next {
			want = "are used; this Machine is the next; raise"
		}
		management.Eventually(t, fmt.Sprintf("%s waits and says %q", name, want), func() bool {
			if name != next { // it hears of itself; one that was refused before the next was known says what was known then
				r.poke(name)
			}
			return strings.Contains(r.condition(name, v1alpha1.ConditionClaimed).Message, want)
		})
	}
	r.raiseQuota(5)
	await(5)
}

// TestAStaleCacheClaimsNoHostBeyondTheQuota freezes what a manager's cache shows of the NodeQuota: the place of the Machine was given away since.
func TestAStaleCacheClaimsNoHostBeyondTheQuota(t *testing.T) {
	r := newRig(t, 2)
	r.addQuota(0)
	var old v1alpha1.NodeQuota
	if err := server.Client.Get(t.Context(), r.key(v1alpha1.NodeQuotaName), &old); err != nil {
		t.Fatal(err)
	}
	r.addMachine("late")
	old.Status.Reservations = []v1alpha1.QuotaReservation{{Machine: "late", UID: string(r.machine("late").UID), At: metav1.Now()}}
	r.freeze(&old)
	r.start()
	management.Eventually(t, "late has chosen a host", func() bool { return r.machine("late").Status.HostRef != nil })
	r.looked("late")
	if claimed, _ := r.claimedHosts(); claimed["late"] {
		t.Error("a manager with a stale cache has claimed a host where the quota is 0")
	}
}

// TestAMachineThatLosesItsPlaceWaitsAgain removes the reservation of a Machine that has chosen a host and cannot claim it yet.
func TestAMachineThatLosesItsPlaceWaitsAgain(t *testing.T) {
	r := newRig(t, 1)
	r.addQuota(0)
	r.addMachine("m")
	m := r.machine("m")
	before := m.DeepCopy()
	m.Finalizers = []string{v1alpha1.MachineFinalizer}
	if err := server.Client.Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	before = m.DeepCopy()
	m.Status.Phase, m.Status.HostRef = v1alpha1.MachineClaiming, &v1alpha1.NamespacedReference{Namespace: r.namespace, Name: "server-00"}
	if err := server.Client.Status().Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.start()
	management.Eventually(t, "it waits and names no host", func() bool {
		m := r.machine("m")
		return m.Status.Phase == v1alpha1.MachinePending && m.Status.HostRef == nil && r.condition("m", v1alpha1.ConditionClaimed).Reason == v1alpha1.ReasonQuotaExceeded
	})
	if claimed, _ := r.claimedHosts(); claimed["m"] {
		t.Error("it has claimed its host without a place")
	}
	if c, want := r.condition("m", v1alpha1.ConditionClaimed), " of 0 Machines of NodeType "; !strings.Contains(c.Message, want) {
		t.Errorf("%q, want %q", c.Message, want)
	}
	var q v1alpha1.NodeQuota
	if err := server.Client.Get(t.Context(), r.key(v1alpha1.NodeQuotaName), &q); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), &q); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "it has a host once there is no NodeQuota", func() bool { claimed, _ := r.claimedHosts(); return claimed["m"] })
}

// TestARaisedQuotaLetsTheOldestGoOnFirst has a Machine of each of three seconds.
func TestARaisedQuotaLetsTheOldestGoOnFirst(t *testing.T) {
	r := newRig(t, 4)
	r.addQuota(0)
	names := []string{"z-oldest", "m-second", "a-youngest"}
	for i, name := range names {
		if i == 0 {
			r.addMachine(name)
		} else {
			r.addMachineLater(name, names[i-1])
		}
	}
	r.start()
	management.Eventually(t, "all wait", func() bool { _, waiting := r.claimedHosts(); return waiting == 3 })
	for i, name := range names {
		r.raiseQuota(int32(i) + 1)
		management.Eventually(t, name+" has a host", func() bool {
			claimed, _ := r.claimedHosts()
			for _, younger := range names[i+1:] {
				if claimed[younger] {
					t.Fatalf("%s has a host before %s", younger, name)
				}
			}
			return claimed[name]
		})
	}
}
