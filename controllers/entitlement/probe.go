package entitlement

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// probeInterval is how long a refusal counts as proof.
const probeInterval = 10 * time.Minute

// probeClass is the DeviceClass of the claim that must be refused. No class of an Entitlement has its name, which has no "-".
const probeClass = "probe.ingot.dev"

// probes remembers when the shared cluster last refused for an Entitlement.
type probes struct {
	mu      sync.Mutex
	refused map[types.UID]refusal
}

// refusal is when a cluster refused for a generation of an Entitlement, and in which namespace; without a namespace it did not.
type refusal struct {
	generation int64
	at         time.Time
	namespace  string
	// since is when the first claim of the generation was not refused, of those since the last refusal.
	since time.Time
}

// provingTime is how long a server may take to use a policy that was written. Until then a claim that it takes is no reason to warn, and is tried again within
// seconds.
const provingTime = 10 * time.Second

func (p *probes) last(uid types.UID) refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused[uid]
}

func (p *probes) note(uid types.UID, r refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = map[types.UID]refusal{}
	}
	p.refused[uid] = r
}

// expire has a claim tried again.
func (p *probes) expire(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, isKnown := p.refused[uid]; isKnown {
		r.at, r.namespace = time.Time{}, ""
		p.refused[uid] = r
	}
}

func (p *probes) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, uid)
}

// probe tries a claim that the shared cluster must refuse, as a dry run. That the policies are there says nothing of a server whose admission plugin is off,
// and a server takes some moments to use a new one.
func (r *Reconciler) probe(ctx context.Context, obs *observation) *problem {
	e := obs.entitlement
	namespace := ""
	for _, n := range obs.input.Namespaces {
		if !obs.input.Terminating[n] {
			namespace = n
			break
		}
	}
	now := r.Clock.Now()
	last := r.probes.last(e.UID)
	if namespace == "" {
		return &problem{
			status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNoNamespace, isReachable: true,
			message: entitlement.NoNamespace(e.Spec.Namespaces, obs.input.Namespaces, obs.input.Terminating),
		}
	}
	if last.generation == e.Generation && last.namespace == namespace && now.Sub(last.at) < probeInterval {
		return nil
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "ingot-probe-"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "probe", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: probeClass}}}
	err := obs.access.Client.Create(ctx, claim, client.DryRunAll)
	since := now
	if last.generation == e.Generation && !last.since.IsZero() {
		since = last.since
	}
	if p := judgeProbe(err, e, namespace, now.Sub(since) < provingTime); p != nil {
		r.probes.note(e.UID, refusal{generation: e.Generation, since: since})
		return p
	}
	r.probes.note(e.UID, refusal{generation: e.Generation, at: now, namespace: namespace})
	return nil
}

// judgeProbe returns why the answer to a claim that must be refused is no proof; nil: it was refused by the policy. isEarly: the server may not use the policy yet.
func judgeProbe(err error, e *v1alpha1.Entitlement, namespace string, isEarly bool) *problem {
	p := &problem{status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNotRefused, isReachable: true}
	switch {
	case err == nil:
		p.message = fmt.Sprintf("as a dry run, the shared cluster took a claim of DeviceClass %s in namespace %s, which policy %s must refuse. Its API server takes some moments to use a new policy; "+
			"if this stays, see that its admission plugin ValidatingAdmissionPolicy is on", probeClass, namespace, entitlement.ClaimPolicyName(e))
		if isEarly {
			p.reason, p.again = v1alpha1.ReasonNotProvedYet, time.Second
		}
	case tenantaccess.IsAnswer(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+entitlement.ClaimPolicyName(e)+"'"):
		return nil // the API server's reason is Invalid
	case !tenantaccess.IsAnswer(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err),
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"):
		p = problemOf("try a claim that must be refused in namespace "+namespace, err)
		if !isEarly {
			p.again = 0
		}
	default:
		p.message = fmt.Sprintf("a claim of DeviceClass %s in namespace %s, which policy %s must refuse, is refused by something else, so that it is not known whether the policy is at work: %s",
			probeClass, namespace, entitlement.ClaimPolicyName(e), input.Line(err.Error(), tenantaccess.MaxQuoted))
	}
	return p
}
