package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

func TestANodeThatRemainedInAnotherClusterIsNotSettledByThisOne(t *testing.T) {
	now := time.Unix(1e9, 0)
	own := v1alpha1.ProviderIDPrefix + "m/1"
	for name, c := range map[string]struct {
		noted, answers types.UID
		node           Node
		isOld          bool
		want           RemainingAction
	}{
		"the same cluster has no such Node":            {noted: "a", answers: "a", want: ForgetRemaining},
		"a version before has noted no cluster":        {answers: "a", want: ForgetRemaining},
		"another cluster has no such Node":             {noted: "a", answers: "b", want: KeepElsewhere},
		"a cluster that is not known has none":         {noted: "a", want: KeepElsewhere},
		"another cluster has one of that name":         {noted: "a", answers: "b", node: Node{Found: true, ProviderID: v1alpha1.ProviderIDPrefix + "other/1"}, want: KeepElsewhere},
		"it has one of that name, and nothing is said": {noted: "a", answers: "b", node: Node{Found: true}, want: KeepElsewhere},
		"it has the very Node":                         {noted: "a", answers: "b", node: Node{Found: true, ProviderID: own}, want: DeleteRemaining},
		"another cluster has none for a month":         {noted: "a", answers: "b", isOld: true, want: ForgetRemaining},
	} {
		r := Remaining{Clock: watched.Clock{Now: now}, Tenant: Tenant{Found: true, Reachable: true, ClusterUID: c.answers}, Node: c.node}
		r.Entry = v1alpha1.ReleasedNode{ClusterUID: c.noted, MachineUID: "m", Since: metav1.NewMicroTime(now.Add(-forgetTime + time.Second))}
		if c.isOld {
			r.Now = now.Add(time.Second)
		}
		if got := PlanRemaining(r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTheClusterInWhichANodeIsLeftIsNoted(t *testing.T) {
	f := factsIn(t, v1alpha1.MachineReleasing)
	erased(&f)
	late(&f)
	unreachable(&f)
	f.Token, f.Secret = nil, Secret{}
	f.Host.Record.Spec.TenantClusterUID, f.Tenant.ClusterUID = "joined", "another"
	d := Plan(f)
	if d.Action == nil || d.Action.Kind != ClearHostRecord || len(d.Action.Record.RemainingNodes) != 1 || d.Action.Record.RemainingNodes[0].ClusterUID != "joined" {
		t.Errorf("a Machine's: %+v", d.Action)
	}
	a := PlanOrphan(orphan(reported("m1", ""), releasedAs("m1"), inThePool, func(c *Claim) {
		c.Host.Record.Spec.Tenant, c.Host.Record.Spec.TenantClusterUID = "team/research", "joined"
	}))
	if nodes := a.Record.RemainingNodes; len(nodes) != 1 || nodes[0].ClusterUID != "joined" {
		t.Errorf("an orphan's: %+v", a)
	}
	a = PlanOrphan(orphan(withoutRecord, releasedAs("m1"), inThePool, func(c *Claim) {
		c.LastTenant, c.LastTenantCluster, c.Host.Installation = "team/research", "joined", &v1alpha1.Installation{}
	}))
	if n := a.RemainingNode; n == nil || n.ClusterUID != "joined" {
		t.Errorf("an orphan's without a HostRecord: %+v", a)
	}
}
