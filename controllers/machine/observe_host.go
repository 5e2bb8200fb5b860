package machine

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
)

// observeHost reads the host that the Machine has, or lets placement choose one.
func (r *Reconciler) observeHost(ctx context.Context, obs *observation) error {
	key, err := r.hostKey(ctx, obs)
	if err != nil {
		return err
	}
	if key.Name == "" {
		return r.chooseHost(ctx, obs)
	}
	if obs.host, obs.record, err = r.readHost(ctx, key, obs); err != nil || obs.host == nil {
		return err
	}
	facts := lifecycleHost(obs.host, obs.record, obs.machine.ClaimUID())
	facts.ObservedGeneration, facts.Manageable = obs.observedGeneration, obs.manageable
	facts.LacksClusterUID = obs.needsClusterUID()
	if err := r.reportSameServer(ctx, obs, &facts); err != nil {
		return err
	}
	if obs.machine.Status.Phase == v1alpha1.MachineClaiming && obs.nodeType != nil && obs.provider != nil {
		if facts.ClaimProblem, err = r.claimProblem(ctx, obs, facts.Consumer); err != nil {
			return err
		}
	}
	obs.facts.Host = &facts
	return r.observeSecret(ctx, obs)
}

// hostKey returns the name of the Machine's host: that in the status, or one whose consumerRef the Machine wrote before it
// could write its status.
func (r *Reconciler) hostKey(ctx context.Context, obs *observation) (types.NamespacedName, error) {
	if ref := obs.machine.Status.HostRef; ref != nil {
		return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, nil
	}
	hosts := &metal3.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.MatchingFields{indexConsumerUID: string(obs.machine.ClaimUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return types.NamespacedName{}, fmt.Errorf("list the Machine's hosts: %w", err)
	}
	if len(hosts.Items) == 0 {
		return types.NamespacedName{}, nil
	}
	return client.ObjectKeyFromObject(&hosts.Items[0]), nil
}

// readHost reads the host and its record from the cache where every decision is followed by a write under the lock of one of them, or by
// verifyHost, and where the observation is not to be current: confirm reads what a decision of consequence rests on again. Otherwise it reads from the API
// server.
func (r *Reconciler) readHost(ctx context.Context, key types.NamespacedName, obs *observation) (*metal3.BareMetalHost, *v1alpha1.HostRecord, error) {
	hasRecords, mustBeCurrent := obs.facts.Provider.HasRecords, obs.needsCurrentHost()
	switch {
	case mustBeCurrent && !hasRecords:
		return r.readServedHost(ctx, key, obs)
	case mustBeCurrent && !obs.isCurrent:
		obs.unconfirmedHost = key
		return r.readHostFrom(ctx, r.Client, key)
	case mustBeCurrent:
		return r.readHostFrom(ctx, r.APIReader, key)
	}
	host, record, err := r.readHostFrom(ctx, r.Client, key)
	if err == nil && (host == nil || consumerOf(host, obs.machine.ClaimUID()) != lifecycle.ConsumerMine) {
		return r.readHostFrom(ctx, r.APIReader, key)
	}
	return host, record, err
}

func (r *Reconciler) readHostFrom(ctx context.Context, reader client.Reader, key types.NamespacedName) (*metal3.BareMetalHost, *v1alpha1.HostRecord, error) {
	host, err := read(ctx, reader, key, &metal3.BareMetalHost{})
	if err != nil || host == nil {
		return nil, nil, err
	}
	record, err := r.readHostRecord(ctx, reader, host)
	return host, record, err
}

// needsCurrentHost reports whether an older host would lead to a harmful decision.
func (obs *observation) needsCurrentHost() bool {
	switch obs.machine.Status.Phase {
	case v1alpha1.MachineClaiming, v1alpha1.MachineReleasing, v1alpha1.MachineDraining:
		return true
	case v1alpha1.MachineValidating:
		// An older host would seem to be on already, and the Machine could become Ready before its host is requested to be on.
		return obs.machine.Status.PowerOff != nil
	case v1alpha1.MachineProvisioning:
		// Only a HostRecord says for which attempt an image was written: an older status would tell of the one before.
		return !obs.facts.Provider.HasRecords
	}
	return false
}

// readServedHost reads a host of a metal3 provider from the API server, with the conditions that newer releases of the baremetal-operator write. The
// Go type that Ingot is built with may have no field for them.
func (r *Reconciler) readServedHost(ctx context.Context, key types.NamespacedName, obs *observation) (*metal3.BareMetalHost, *v1alpha1.HostRecord, error) {
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(metal3.GroupVersion.WithKind("BareMetalHost"))
	raw, err := read(ctx, r.APIReader, key, raw)
	if err != nil || raw == nil {
		return nil, nil, err
	}
	host := &metal3.BareMetalHost{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, host); err != nil {
		return nil, nil, fmt.Errorf("read BareMetalHost %s: %w", key, err)
	}
	obs.observedGeneration, obs.manageable = readConditions(raw)
	// It has no HostRecord, unless its namespace had another NodeProvider before.
	record, err := r.readHostRecord(ctx, r.Client, host)
	return host, record, err
}

// conditionManageable is Metal3's: the operator can see and change the power of the host.
const conditionManageable = "Manageable"

// readConditions returns which generation the conditions have observed, and whether the host is manageable; nil: there is no condition, or none of that
// type. The generation is that of Manageable, and without it the highest one: a look of the operator leaves those conditions as they are of which it learned
// nothing, and Healthy keeps its first generation where no BMC tells of its health.
func readConditions(host *unstructured.Unstructured) (observed *int64, manageable *bool) {
	conditions, _, _ := unstructured.NestedSlice(host.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		generation, _, _ := unstructured.NestedInt64(condition, "observedGeneration")
		if condition["type"] == conditionManageable {
			return &generation, ptr.To(condition["status"] == string(metav1.ConditionTrue))
		}
		if observed == nil || generation > *observed {
			observed = &generation
		}
	}
	return observed, nil
}

func (r *Reconciler) readHostRecord(ctx context.Context, reader client.Reader, host *metal3.BareMetalHost) (*v1alpha1.HostRecord, error) {
	return read(ctx, reader, client.ObjectKeyFromObject(host), &v1alpha1.HostRecord{})
}

// reportSameServer gives a host without a HostRecord the error that its own controller does not report: another host is the same server.
func (r *Reconciler) reportSameServer(ctx context.Context, obs *observation, facts *lifecycle.Host) error {
	if obs.record != nil || facts.Consumer != lifecycle.ConsumerMine {
		return nil
	}
	conflicts, err := hostindex.Conflicts(ctx, r.Client, sameserver.HostOf(obs.host, nil))
	if err != nil || len(conflicts) == 0 {
		return err
	}
	facts.Error, facts.ErrorReason = string(metal3.ProvisionedRegistrationError), v1alpha1.ReasonSameServer
	return nil
}

// needsClusterUID reports whether the host is a metal3 one and says that the Machine's tenant has it, and not which cluster that is.
func (obs *observation) needsClusterUID() bool {
	return obs.provider != nil && obs.provider.Spec.Metal3 != nil && placement.NeedsClusterUID(obs.host, tenantKey(obs.machine).String(), obs.facts.Tenant.ClusterUID)
}

// consumerOf returns whether the host's consumerRef names the Machine of that uid, something else, or nothing.
func consumerOf(h *metal3.BareMetalHost, uid types.UID) lifecycle.Consumer {
	switch ref := h.Spec.ConsumerRef; {
	case ref == nil:
		return lifecycle.ConsumerNone
	case uid != "" && ref.UID == uid:
		return lifecycle.ConsumerMine
	default:
		return lifecycle.ConsumerOther
	}
}

// lifecycleHost returns the facts about a host by which lifecycle.Plan decides for the Machine of that uid.
func lifecycleHost(h *metal3.BareMetalHost, record *v1alpha1.HostRecord, uid types.UID) lifecycle.Host {
	facts := lifecycle.Host{
		Namespace: h.Namespace, Name: h.Name, Generation: h.Generation, Consumer: consumerOf(h, uid), Online: h.Spec.Online,
		State: h.Status.Provisioning.State, InstalledURL: h.Status.Provisioning.Image.URL,
		Error: string(h.Status.ErrorType), ErrorCount: h.Status.ErrorCount, PoweredOn: h.Status.PoweredOn, OperationalStatus: h.Status.OperationalStatus,
	}
	facts.NeverPoweredOff, facts.CleaningChanged = h.Spec.DisablePowerOff, lifecycle.IsCleaningChanged(h)
	_, facts.RebootRequested = h.Annotations[metal3.RebootAnnotationPrefix]
	facts.PowerOffRequested, facts.PowerOffOfRunning = lifecycle.IsPowerOffRequested(h), lifecycle.IsPowerOffOfRunning(h)
	facts.SecretAttempt = secretAttemptOf(h)
	if h.Spec.Image != nil {
		facts.ImageURL = h.Spec.Image.URL
	}
	facts.Deleting = h.DeletionTimestamp != nil
	facts.Installation, _ = v1alpha1.InstallationOf(h) // one that cannot be read is written again
	_, facts.Paused = h.Annotations[metal3.PausedAnnotation]
	_, facts.Detached = h.Annotations[metal3.DetachedAnnotation]
	if record != nil {
		if failed := record.Status.Error; failed != nil {
			facts.ErrorReason = failed.Reason
		}
		facts.Record = &lifecycle.HostRecord{Spec: record.Spec, Status: record.Status}
	}
	return facts
}

// secretAttempt returns the attempt in the name of the claim Secret; 0: the name has none.
func (obs *observation) secretAttempt() int64 {
	if obs.isServed() {
		return obs.machine.Status.Attempt
	}
	return 0
}

// observeSecret reads the claim Secret, or remembers what it said. Secrets are not cached.
func (r *Reconciler) observeSecret(ctx context.Context, obs *observation) error {
	if obs.facts.Host.Consumer != lifecycle.ConsumerMine || !obs.facts.CanHaveClaimSecret() {
		return nil
	}
	if known, isKnown := r.Claims.get(obs); isKnown && !obs.isCurrent {
		obs.facts.Secret, obs.unconfirmedSecret = known, true
		return nil
	}
	return r.readSecret(ctx, obs)
}

// readSecret reads the claim Secret from the API server.
func (r *Reconciler) readSecret(ctx context.Context, obs *observation) error {
	var err error
	if obs.secret, err = read(ctx, r.APIReader, documents.ClaimKey(obs.host, obs.secretAttempt()), &corev1.Secret{}); err != nil {
		return err
	}
	obs.facts.Secret = secretFacts(obs.secret, obs.machine.ClaimUID())
	r.Claims.add(obs, obs.facts.Secret)
	return nil
}
