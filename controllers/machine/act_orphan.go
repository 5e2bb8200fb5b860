package machine

import (
	"context"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
	"github.com/ingot-dev/ingot/controllers/step"
)

// oneHostDelay is how often a release that waits for another host to be deleted or corrected is planned again: no watch of this controller tells
// of a change to that host.
const oneHostDelay = 30 * time.Second

// settleClaims looks for hosts whose consumerRef has the name of the Machine and another uid, and carries out what lifecycle.PlanOrphan decides
// about them: at most one write, whose name it returns, or AwaitOneHost if a release waits. uid is that of the Machine in the cache; empty: there
// is none.
func (r *Reconciler) settleClaims(ctx context.Context, key types.NamespacedName, uid types.UID) (lifecycle.OrphanActionKind, error) {
	hosts := &metal3.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.MatchingFields{indexConsumerName: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list the Machine's hosts: %w", err)
	}
	waits := lifecycle.LeaveClaim
	for i := range hosts.Items {
		host := &hosts.Items[i]
		if reported, err := r.isReportedGone(ctx, host); err != nil || host.Spec.ConsumerRef.UID == uid && !reported {
			if err != nil {
				return "", err
			}
			continue
		}
		switch written, err := r.settleClaim(ctx, key, client.ObjectKeyFromObject(host)); {
		case err != nil:
			return "", err
		case written == lifecycle.AwaitOneHost:
			waits = written
		case written != lifecycle.LeaveClaim:
			return written, nil
		}
	}
	return waits, nil
}

// settled returns the outcome of a reconcile that ended with settleClaims.
func settled(written lifecycle.OrphanActionKind, err error) step.Outcome {
	switch {
	case err != nil:
		return step.Retry(err)
	case written == lifecycle.LeaveClaim:
		return step.Done()
	case written == lifecycle.AwaitOneHost:
		return step.Wait("no other host to be the server", oneHostDelay)
	}
	return step.Wait("the caches to have "+string(written), cacheDelay)
}

// isReportedGone reports whether the cached HostRecord says that the Machine in the consumerRef is gone.
func (r *Reconciler) isReportedGone(ctx context.Context, host *metal3.BareMetalHost) (bool, error) {
	record, err := r.readHostRecord(ctx, r.Client, host)
	return record != nil && record.Spec.MachineGone != nil, err
}

// settleClaim decides about one host. Everything is read from the API server, because the cache may lag behind a claim: the claim of a new
// Machine would be cleared, or reported as that of a Machine that is gone.
func (r *Reconciler) settleClaim(ctx context.Context, machine, name types.NamespacedName) (lifecycle.OrphanActionKind, error) {
	host, err := read(ctx, r.APIReader, name, &metal3.BareMetalHost{})
	if err != nil || host == nil || host.Spec.ConsumerRef == nil || host.Spec.ConsumerRef.Namespace != machine.Namespace || host.Spec.ConsumerRef.Name != machine.Name {
		return "", err
	}
	record, err := r.readHostRecord(ctx, r.APIReader, host)
	if err != nil {
		return "", err
	}
	claim := lifecycle.Claim{
		Now: r.Clock.Now(), Host: lifecycleHost(host, record, ""), MachineUID: host.Spec.ConsumerRef.UID, Release: host.Annotations[v1alpha1.AnnotationRelease],
		MachineName: machine.Name, LastTenant: host.Annotations[placement.AnnotationLastTenant],
		LastTenantCluster: types.UID(host.Annotations[placement.AnnotationLastTenantClusterUID]),
	}
	live, err := read(ctx, r.APIReader, machine, &v1alpha1.Machine{})
	if err != nil {
		return "", err
	}
	if live != nil {
		claim.NamesakeUID = live.ClaimUID()
	}
	secret, err := r.observeRelease(ctx, host, record, &claim)
	if err != nil {
		return "", err
	}
	obs := &observation{host: host, record: record, secret: secret}
	if obs.provider, err = r.providerOfNamespace(ctx, host.Namespace); err != nil {
		return "", err
	}
	action := lifecycle.PlanOrphan(claim)
	if err := r.actOnClaim(ctx, obs, action); err != nil {
		return "", fmt.Errorf("%s of host %s, whose Machine %s is gone: %w", action.Kind, name, machine, err)
	}
	return action.Kind, nil
}

// observeRelease sets what the release of a claim depends on besides, and returns a claim Secret that is left; nil when there is none.
func (r *Reconciler) observeRelease(ctx context.Context, host *metal3.BareMetalHost, record *v1alpha1.HostRecord, claim *lifecycle.Claim) (*corev1.Secret, error) {
	if claim.NamesakeUID != "" && claim.NamesakeUID == claim.MachineUID {
		return nil, nil
	}
	if claim.Release != "" {
		conflicts, err := hostindex.Conflicts(ctx, r.Client, sameserver.HostOf(host, record))
		if err != nil {
			return nil, err
		}
		claim.SameServer = sameserver.Describe(conflicts)
	}
	for _, attempt := range claim.Host.SecretAttempts() {
		secret, err := read(ctx, r.APIReader, documents.ClaimKey(host, attempt), &corev1.Secret{})
		if err != nil || secret != nil {
			claim.HasSecret = secret != nil
			return secret, err
		}
	}
	return nil, nil
}

// actOnClaim carries out the action.
func (r *Reconciler) actOnClaim(ctx context.Context, obs *observation, a lifecycle.OrphanAction) error {
	none := lifecycle.Action{}
	if a.Kind != lifecycle.LeaveClaim {
		ctrl.LoggerFrom(ctx).Info("Claim of a Machine that is gone", "host", client.ObjectKeyFromObject(obs.host).String(), "action", string(a.Kind), "message", a.Message)
	}
	switch a.Kind {
	case lifecycle.AwaitOneHost:
		r.Recorder.Eventf(obs.host, nil, corev1.EventTypeWarning, v1alpha1.ReasonSameServer, string(a.Kind), "the release of this host waits: %s", a.Message)
	case lifecycle.WriteClaimRecord:
		return r.writeHostRecord(ctx, obs, lifecycle.Action{Record: a.Record})
	case lifecycle.PowerOffOrphan:
		return r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) { lifecycle.RequestPowerOff(h, h.Spec.ConsumerRef.UID) })
	case lifecycle.DeprovisionOrphan:
		return r.deprovision(ctx, obs, none)
	case lifecycle.DeleteOrphanSecret:
		return r.deleteClaimSecret(ctx, obs, none)
	case lifecycle.FreeOrphan:
		return r.freeHost(ctx, obs, string(a.Kind), a.RemainingNode)
	}
	return nil
}
