package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/step"
)

// restoreDelay is how often a Machine is compared again with a restored host that it does not take over.
const restoreDelay = 10 * time.Second

// settleRestored looks for a host that names the Machine and whose object was created again from a backup, and carries out what
// lifecycle.PlanRestore decides: at most one write. It reports whether the reconcile ends with the outcome.
func (r *Reconciler) settleRestored(ctx context.Context, machine *v1alpha1.Machine) (bool, reconcile.Result, error) {
	hosts := &metal3.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.MatchingFields{indexConsumerName: client.ObjectKeyFromObject(machine).String()}, client.UnsafeDisableDeepCopy); err != nil {
		return ended(step.Retry(fmt.Errorf("list the Machine's hosts: %w", err)))
	}
	for i := range hosts.Items {
		if machine.UID == "" || !v1alpha1.IsRestored(&hosts.Items[i]) {
			continue
		}
		obs, claim, err := r.observeRestored(ctx, machine, hosts.DeepCopy().Items, i)
		if err != nil {
			return ended(step.Retry(fmt.Errorf("observe restored host %s: %w", hosts.Items[i].Name, err)))
		}
		if obs == nil {
			continue
		}
		action := lifecycle.PlanRestore(*claim)
		switch action.Kind {
		case lifecycle.LeaveRestored:
			continue
		case lifecycle.ReportUnmatched, lifecycle.AwaitRestored:
			return r.reportRestored(ctx, obs, *claim, action)
		}
		return ended(r.takeOver(ctx, obs, *claim, action))
	}
	return false, reconcile.Result{}, nil
}

// ended returns that the reconcile ends with the outcome.
func ended(o step.Outcome) (bool, reconcile.Result, error) {
	result, err := o.Result()
	return true, result, err
}

// observeRestored reads everything from the API server, and returns nil where the cache was behind.
func (r *Reconciler) observeRestored(ctx context.Context, machine *v1alpha1.Machine, hosts []metal3.BareMetalHost, at int) (*observation, *lifecycle.RestoredClaim, error) {
	live, err := read(ctx, r.APIReader, client.ObjectKeyFromObject(machine), &v1alpha1.Machine{})
	if err != nil || live == nil || live.UID != machine.UID {
		return nil, nil, err
	}
	obs := &observation{machine: live, facts: lifecycle.Facts{Clock: serverclock.Of(r.Clock), Timeouts: r.Timeouts}}
	obs.host, err = read(ctx, r.APIReader, client.ObjectKeyFromObject(&hosts[at]), &metal3.BareMetalHost{})
	if err != nil || obs.host == nil || !isRestoredFor(obs.host, live) {
		return nil, nil, err
	}
	if obs.record, err = r.readHostRecord(ctx, r.APIReader, obs.host); err != nil {
		return nil, nil, err
	}
	obs.facts.Machine = machineFacts(live)
	for _, observe := range []func(context.Context, *observation) error{r.observeNodeType, r.observeTenant} {
		if err := observe(ctx, obs); err != nil {
			return nil, nil, err
		}
	}
	provider, revision, err := r.observeInstalled(ctx, obs)
	if err != nil {
		return nil, nil, err
	}
	obs.facts.Provider = provider
	claim := r.restoredClaim(obs)
	claim.OtherHosts, claim.Revision = namesExcept(hosts, at), revision
	return obs, claim, r.observeRestoredNode(ctx, obs, claim)
}

// observeInstalled reads the NodeProvider of the host and, where the HostRecord is empty and is to be made again, the revision that is installed.
func (r *Reconciler) observeInstalled(ctx context.Context, obs *observation) (provider lifecycle.Provider, revision lifecycle.Revision, err error) {
	installed := &observation{machine: obs.machine.DeepCopy(), nodeType: obs.nodeType, facts: obs.facts}
	installed.machine.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: obs.host.Namespace, Name: obs.host.Name}
	if err = r.observeProvider(ctx, installed); err != nil || obs.record == nil || obs.record.Spec.Machine != nil {
		return installed.facts.Provider, revision, err
	}
	if i, problem := v1alpha1.InstallationOf(obs.host); problem == nil && i != nil {
		_, revision, err = r.readRevision(ctx, installed, i.Installed())
	}
	return installed.facts.Provider, revision, err
}

// namesExcept returns the names of the hosts but one.
func namesExcept(hosts []metal3.BareMetalHost, at int) []string {
	var out []string
	for i := range hosts {
		if i != at {
			out = append(out, hosts[i].Namespace+"/"+hosts[i].Name)
		}
	}
	return out
}

// isRestoredFor reports whether the host was created again from a backup and names the Machine.
func isRestoredFor(host *metal3.BareMetalHost, m *v1alpha1.Machine) bool {
	ref := host.Spec.ConsumerRef
	return v1alpha1.IsRestored(host) && v1alpha1.IsMachineRef(ref) && ref.Namespace == m.Namespace && ref.Name == m.Name
}

func (r *Reconciler) restoredClaim(obs *observation) *lifecycle.RestoredClaim {
	claim := &lifecycle.RestoredClaim{
		Now: obs.facts.Now, Timeouts: obs.facts.Timeouts, Machine: obs.facts.Machine, Host: lifecycleHost(obs.host, obs.record, ""),
		ClaimUID: obs.host.Spec.ConsumerRef.UID, Tenant: obs.facts.Tenant, Provider: obs.facts.Provider,
		OwnsRecord: obs.record != nil && isOwnedBy(obs.record, obs.host.UID),
	}
	claim.Machine.UID = obs.machine.UID
	var err error
	if claim.Installation, err = v1alpha1.InstallationOf(obs.host); err != nil {
		claim.InstallationProblem = err.Error()
	}
	return claim
}

func isOwnedBy(o client.Object, owner types.UID) bool {
	for _, ref := range o.GetOwnerReferences() {
		if ref.UID == owner {
			return true
		}
	}
	return false
}

// observeRestoredNode reads the Node at the tenant's API server.
func (r *Reconciler) observeRestoredNode(ctx context.Context, obs *observation, claim *lifecycle.RestoredClaim) error {
	if obs.access == nil {
		return nil
	}
	node, err := read(ctx, obs.access.Client, clusterKey(obs.machine.Name), &corev1.Node{})
	if err != nil {
		obs.setUnreachable(err)
		claim.Tenant = obs.facts.Tenant
		return nil
	}
	if node != nil {
		claim.NodeRevision = node.Labels[v1alpha1.LabelRevision]
		claim.Node = lifecycle.Node{
			Found: true, UID: node.UID, ProviderID: node.Spec.ProviderID, SystemUUID: node.Status.NodeInfo.SystemUUID, Installation: node.Labels[v1alpha1.LabelInstallation],
		}
	}
	return nil
}

// takeOver carries out the action.
func (r *Reconciler) takeOver(ctx context.Context, obs *observation, claim lifecycle.RestoredClaim, a lifecycle.RestoreAction) step.Outcome {
	host := client.ObjectKeyFromObject(obs.host).String()
	ctrl.LoggerFrom(ctx).Info("Restored host", "host", host, "action", string(a.Kind), "installationUID", string(claim.ClaimUID))
	var err error
	switch a.Kind {
	case lifecycle.FinalizeRestored:
		err = r.addFinalizer(ctx, obs, lifecycle.Action{})
	case lifecycle.RecordRestored:
		var note func(*metal3.BareMetalHost)
		if note, err = installationNote(a.Installation, false); err == nil {
			err = r.patchHost(ctx, obs.host, note)
		}
	case lifecycle.RebuildRecord:
		err = r.writeHostRecord(ctx, obs, lifecycle.Action{Record: a.Record})
	case lifecycle.TakeOver:
		before := obs.machine.DeepCopy()
		obs.machine.Status = a.Status
		if err = r.Client.Status().Patch(ctx, obs.machine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err == nil {
			r.Recorder.Eventf(obs.machine, nil, corev1.EventTypeNormal, v1alpha1.ReasonRestored, string(a.Kind),
				"has host %s again, which was installed for it under uid %s", host, claim.ClaimUID)
		}
	case lifecycle.ConfirmHost:
		err = r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) { v1alpha1.Register(h) })
	}
	if err != nil {
		return step.Retry(fmt.Errorf("%s %s: %w", a.Kind, host, err))
	}
	return step.Wait("the caches to have "+string(a.Kind), cacheDelay)
}

// reportRestored writes the condition of a Machine that does not take its restored host over, and reports on the host what kubectl ingot hosts shows.
// A Machine that is being deleted goes on to go.
func (r *Reconciler) reportRestored(ctx context.Context, obs *observation, claim lifecycle.RestoredClaim, a lifecycle.RestoreAction) (bool, reconcile.Result, error) {
	if a.Kind == lifecycle.ReportUnmatched {
		if _, err := r.settleClaims(ctx, client.ObjectKeyFromObject(obs.machine), obs.machine.ClaimUID()); err != nil {
			return ended(step.Retry(err))
		}
		if claim.Machine.Deleting {
			return false, reconcile.Result{}, nil
		}
	}
	after := obs.machine.DeepCopy()
	after.Status = claim.Unmatched(a)
	changes := step.ConditionEvents(obs.machine.Status.Conditions, after.Status.Conditions, string(a.Kind), v1alpha1.ConditionClaimed)
	result, err := step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.machine, after, changes, step.Wait(a.Message, restoreDelay))
	return true, result, err
}

// recordInstallation writes what is installed into the host's annotations. Hosts without a HostRecord get their identity with it.
func (r *Reconciler) recordInstallation(ctx context.Context, obs *observation, a lifecycle.Action) error {
	note, err := installationNote(a.Installation, true)
	if err != nil {
		return err
	}
	return r.patchHost(ctx, obs.host, func(h *metal3.BareMetalHost) {
		note(h)
		if !obs.facts.Provider.HasRecords {
			lifecycle.EndInstallation(h, obs.erasePolicy())
		}
		if a.ClusterUID != "" {
			setClusterUID(h, a.ClusterUID)
		}
	})
}

// installationNote returns the change of a host's annotations that says what is installed there and, if it is to be registered, which object the host is.
func installationNote(i *v1alpha1.Installation, register bool) (func(*metal3.BareMetalHost), error) {
	text, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("write annotation %s: %w", v1alpha1.AnnotationInstallation, err)
	}
	return func(h *metal3.BareMetalHost) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AnnotationInstallation, string(text))
		if register {
			v1alpha1.Register(h)
		}
	}, nil
}

// leavingNote returns the change of a host's annotations that goes with a power-off or a deprovisioning: what is installed is being released or,
// where the Machine is not being deleted, stays until it is replaced.
func leavingNote(obs *observation) (func(*metal3.BareMetalHost), error) {
	if obs.facts.Host == nil || obs.facts.Host.Installation == nil || !obs.facts.Machine.Deleting {
		return func(*metal3.BareMetalHost) {}, nil
	}
	leaving := *obs.facts.Host.Installation
	leaving.State = v1alpha1.InstallationReleasing
	return installationNote(&leaving, true)
}
