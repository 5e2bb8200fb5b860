package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// The defaults of a NodeType that says nothing of its rollout.
const (
	defaultMaxUnavailable = "10%"
	defaultCanary         = 1
	defaultBake           = 10 * time.Minute
	defaultFailureBudget  = 1
)

// PolicyOf fills in the defaults of a NodeType's spec.rollout, which may be nil: 10%, a canary of one Machine baked for ten
// minutes, a failure budget of one.
func NewPolicy(p *v1alpha1.RolloutPolicy) Policy {
	policy := Policy{MaxUnavailable: intstr.FromString(defaultMaxUnavailable), Canary: defaultCanary, Bake: defaultBake, FailureBudget: defaultFailureBudget}
	if p == nil {
		return policy
	}
	if p.MaxUnavailable != nil {
		policy.MaxUnavailable = *p.MaxUnavailable
	}
	if p.FailureBudget != nil {
		policy.FailureBudget = int(*p.FailureBudget)
	}
	if c := p.Canary; c != nil {
		policy.Canary = max(1, int(c.Machines))
		if c.Bake != nil {
			policy.Bake = c.Bake.Duration
		}
	}
	return policy
}

// BeforeOf is for Facts.Before; nil gives nil.
func NewPreviousRollout(r *v1alpha1.Rollout) *PreviousRollout {
	if r == nil {
		return nil
	}
	return &PreviousRollout{Name: r.Name, Settled: r.Status.Phase.Settled(), InProgress: r.Status.InProgress}
}

// PoolsOf are the NodePools of a NodeType.
func NewPools(nodeType string, pools []v1alpha1.NodePool) map[types.NamespacedName]Pool {
	of := make(map[types.NamespacedName]Pool, len(pools))
	for i := range pools {
		p := &pools[i]
		if p.Spec.NodeTypeRef.Name != nodeType {
			continue
		}
		var pool Pool
		if p.Spec.Rollout != nil {
			pool.MaxUnavailable = p.Spec.Rollout.MaxUnavailable
		}
		of[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = pool
	}
	return of
}

// Wanted is what a Machine's spec asks for. A spec that names a revision alone leaves the rendering to the NodeType: to what the
// Machine has of that revision, else to the target.
func DesiredRevision(m *v1alpha1.Machine, target v1alpha1.RenderedRevision) v1alpha1.RenderedRevision {
	asked := m.Spec.Asked()
	if asked.Rendering != "" || asked.Revision == "" {
		return asked
	}
	for _, has := range []v1alpha1.RenderedRevision{m.Status.Installed(), target} {
		if has.Revision == asked.Revision {
			return has
		}
	}
	return asked
}

// MachineOf is a Machine as the planner of the Rollout of that name and target sees it; TenantTrouble is the caller's to fill in.
func NewMachine(rollout string, target v1alpha1.RenderedRevision, m *v1alpha1.Machine, now time.Time) Machine {
	out := Machine{
		Namespace: m.Namespace, Name: m.Name, Marked: m.Labels[v1alpha1.LabelRollout] == rollout,
		Desired: DesiredRevision(m, target), Installed: m.Status.Installed(), Phase: m.Status.Phase,
		Deleting: m.DeletionTimestamp != nil, Claimed: m.Status.HostRef != nil,
		FailureReason: failureReason(m, now), WaitingFor: m.Status.WaitingFor,
	}
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil && owner.Kind == "NodePool" {
		out.Pool = types.NamespacedName{Namespace: m.Namespace, Name: owner.Name}
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
		out.Ready, out.ReadySince = true, c.LastTransitionTime.Time
	}
	return out
}

// atOnce are reasons with which a Machine does not go on by itself, whatever its deadline says.
var permanentReasons = map[string]bool{
	v1alpha1.ReasonHostLost: true, v1alpha1.ReasonNodeConflict: true, v1alpha1.ReasonDrainTimedOut: true,
	v1alpha1.ReasonProvisioningTimedOut: true, v1alpha1.ReasonJoinTimedOut: true, v1alpha1.ReasonValidationTimedOut: true,
	string(hardware.ReasonPowerOnIgnored): true, string(hardware.ReasonPowerOffIgnored): true,
	string(hardware.ReasonNoBootRequest): true, string(hardware.ReasonAgentMissing): true, string(hardware.ReasonAgentSilent): true,
	string(hardware.ReasonBootLoop): true, string(hardware.ReasonImageUnreachable): true, string(hardware.ReasonDigestMismatch): true,
	string(hardware.ReasonImageInvalid): true, string(hardware.ReasonNoRootDevice): true, string(hardware.ReasonDiskError): true,
	string(hardware.ReasonDeadlineExceeded): true,
}

// Failure is why a person has to look at a Machine: the reason of its Ready condition when that does not mend itself, or when
// its phase is over its deadline. Empty when the Machine is Ready or still at work, and while its status speaks of an
// earlier spec: what failed then may be what a roll mends.
func failureReason(m *v1alpha1.Machine, now time.Time) string {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || m.Status.ObservedGeneration < m.Generation {
		return ""
	}
	if permanentReasons[ready.Reason] || m.Status.Deadline != nil && now.After(m.Status.Deadline.Time) {
		return ready.Reason
	}
	return ""
}
