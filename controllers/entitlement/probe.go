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
	// tries counts the claims of the generation that were not refused since then.
	tries int
}

// maxSoonTries is how often a claim is tried again within seconds.
const maxSoonTries = 10

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
	if p := judgeProbe(err, e, namespace); p != nil {
		// A server uses a new policy within seconds. One that does not is asked with the steady look.
		if last.tries++; last.generation != e.Generation {
			last.tries = 1
		}
		if last.tries > maxSoonTries {
			p.again = 0
		}
		r.probes.note(e.UID, refusal{generation: e.Generation, tries: last.tries})
		return p
	}
	r.probes.note(e.UID, refusal{generation: e.Generation, at: now, namespace: namespace})
	return nil
}

// judgeProbe returns why the answer to a claim that must be refused is no proof; nil: it was refused by the policy.
func judgeProbe(err error, e *v1alpha1.Entitlement, namespace string) *problem {
	p := &problem{status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNotRefused, again: time.Second, isReachable: true}
	switch {
	case err == nil:
		p.message = fmt.Sprintf("as a dry run, the shared cluster took a claim of DeviceClass %s in namespace %s, which policy %s must refuse. Its API server takes some moments to use a new policy; "+
			"if this stays, see that its admission plugin ValidatingAdmissionPolicy is on", probeClass, namespace, entitlement.ClaimPolicyName(e))
	case tenantaccess.IsAnswer(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+entitlement.ClaimPolicyName(e)+"'"):
		return nil // the API server's reason is Invalid
	case !tenantaccess.IsAnswer(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err),
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"):
		return problemOf("try a claim that must be refused in namespace "+namespace, err)
	default:
		p.again = 0
		p.message = fmt.Sprintf("a claim of DeviceClass %s in namespace %s, which policy %s must refuse, is refused by something else, so that it is not known whether the policy is at work: %s",
			probeClass, namespace, entitlement.ClaimPolicyName(e), tenantaccess.Printable(err.Error()))
	}
	return p
}
