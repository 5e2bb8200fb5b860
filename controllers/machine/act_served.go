package machine

import (
	"context"
	"strconv"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
)

// isServed reports whether a baremetal-operator serves the Machine's host. Such a host has no HostRecord, and what one would say is in its annotations.
func (obs *observation) isServed() bool { return !obs.facts.Provider.HasRecords && obs.record == nil }

// beginServedInstallation writes onto a metal3 host, with the first request to install, which tenant has its disks from now on, and with each request by
// which erase a failed installation is removed.
func (r *Reconciler) beginServedInstallation(h *metal3.BareMetalHost, obs *observation) {
	lifecycle.BeginInstallation(h, h.Annotations[placement.AnnotationLastTenant] != "")
	if h.Annotations[v1alpha1.AnnotationInstallation] != "" {
		return
	}
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, placement.AnnotationLastTenant, tenantKey(obs.machine).String())
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, placement.AnnotationLastTenantUID, string(obs.facts.Tenant.UID))
	setClusterUID(h, obs.facts.Tenant.ClusterUID)
}

// setClusterUID writes which cluster the tenant of a metal3 host is. One that is not known removes what an earlier tenant's installation wrote.
func setClusterUID(h *metal3.BareMetalHost, cluster types.UID) {
	delete(h.Annotations, placement.AnnotationLastTenantClusterUID)
	if cluster != "" {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, placement.AnnotationLastTenantClusterUID, string(cluster))
	}
}

// recordSecretAttempt writes onto a metal3 host that the present attempt may have a claim Secret.
func (r *Reconciler) recordSecretAttempt(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	return r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) { setSecretAttempt(h, obs.machine.Status.Attempt) })
}

func setSecretAttempt(h *metal3.BareMetalHost, attempt int64) {
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationSecretAttempt, strconv.FormatInt(attempt, 10))
}

// secretAttemptOf returns what setSecretAttempt has written; 0: nothing, or no number.
func secretAttemptOf(h *metal3.BareMetalHost) int64 {
	attempt, err := strconv.ParseInt(h.Annotations[v1alpha1.AnnotationSecretAttempt], 10, 64)
	if err != nil {
		return 0
	}
	return attempt
}

func (r *Reconciler) returnHost(ctx context.Context, obs *observation, a lifecycle.Action) error {
	return r.freeHost(ctx, obs, string(a.Kind), a.RemainingNode)
}

// freeHost removes the claim of a host, and writes down the Node that may be left, if one is given.
func (r *Reconciler) freeHost(ctx context.Context, obs *observation, action string, remaining *v1alpha1.ReleasedNode) error {
	named := obs.host.ObjectMeta.DeepCopy()
	if remaining != nil {
		// Before the claim is removed. Otherwise: the host is free, and nothing is left that would write down the Node again.
		if err := v1alpha1.AddRemainingNode(named, *remaining); err != nil {
			return err
		}
	}
	if err := r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) {
		h.Annotations = named.Annotations
		lifecycle.WithdrawPowerOff(h)
		lifecycle.EndErase(h)
		h.Spec.ConsumerRef = nil
		delete(h.Annotations, v1alpha1.AnnotationRelease)
		delete(h.Annotations, v1alpha1.AnnotationInstallation)
		delete(h.Annotations, v1alpha1.AnnotationSecretAttempt)
	}); err != nil {
		return err
	}
	r.reportUnprovenErase(obs, action)
	return nil
}

// reportUnprovenErase adds an event to a metal3 host that is returned without the erase that its NodeProvider asks for.
func (r *Reconciler) reportUnprovenErase(obs *observation, action string) {
	isAsked := obs.erasePolicy() == nil || obs.erasePolicy().OnRelease != v1alpha1.EraseNone
	last, isKnown := obs.host.Annotations[v1alpha1.AnnotationLastErase]
	if obs.record != nil || !isAsked || obs.host.Annotations[placement.AnnotationLastTenant] == "" || last == string(v1alpha1.EraseMetadata) {
		return
	}
	erase := "without an erase"
	if !isKnown {
		erase = "and nothing says that it was erased"
	}
	r.Recorder.Eventf(obs.host, nil, corev1.EventTypeWarning, v1alpha1.ReasonEraseNotProven, action,
		"was returned %s, although its NodeProvider asks for an erase: only its last tenant gets it; kubectl ingot hosts says what other tenants need", erase)
}
