package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/host/sessions"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/controllers/step"
)

// reconcileHost carries out the steps of a reconcile in the order of the package comment.
func (r *Reconciler) reconcileHost(ctx context.Context, provider *v1alpha1.NodeProvider, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (reconcile.Result, error) {
	host, err := r.currentHost(ctx, host, record)
	if err != nil || host == nil {
		return step.Retry(err).Result()
	}
	obs, decision, err := r.decide(ctx, provider, host, record)
	if err != nil {
		return step.Retry(err).Result()
	}
	if decision.RemoveFinalizer {
		return step.Retry(r.removeFinalizers(ctx, host, record)).Result()
	}
	intent, isTaken, err := r.writeDecision(ctx, provider, record, decision)
	if err != nil || !isTaken {
		return turnLost(err, r.Timeouts.PollInterval).Result()
	}
	if err := r.register(ctx, host, decision.Register); err != nil {
		return step.Retry(err).Result()
	}
	labelEvents, err := r.labelHost(ctx, host, decision)
	if err != nil {
		return step.Retry(err).Result()
	}
	decision = r.performAction(ctx, host, obs, decision)
	if err := r.writeFailure(ctx, record, intent, decision.Record); err != nil {
		return step.Retry(err).Result()
	}
	if err := r.dropAnnotations(ctx, host, decision.RemoveAnnotations); err != nil {
		return step.Retry(err).Result()
	}
	decision.Events = append(decision.Events, labelEvents...)
	result, err := r.finish(ctx, host, obs, decision)
	if err == nil {
		countAttempt(record.Status.Wanted, decision.Record.Wanted)
	}
	return result, err
}

// writeDecision writes the record's status as it is before the action, and returns it. It writes nothing when it is not the host's turn any more.
func (r *Reconciler) writeDecision(ctx context.Context, provider *v1alpha1.NodeProvider, record *v1alpha1.HostRecord, d plan.Decision) (intent v1alpha1.HostRecordStatus, isTaken bool, err error) {
	if isTaken, err = r.takeTurn(ctx, provider, record, d); err != nil || !isTaken {
		return intent, isTaken, err
	}
	intent = d.Record
	if d.Action.Kind != plan.ActionNone {
		intent.Error = record.Status.Error // it is written after the action, which may change it
	}
	return intent, true, r.writeIntent(ctx, record, d.Action.Kind, intent)
}

// writeIntent writes the record's status before the action, or verifies that the record is still the one that was read. The
// caller's record stays unchanged.
func (r *Reconciler) writeIntent(ctx context.Context, record *v1alpha1.HostRecord, action plan.ActionKind, status v1alpha1.HostRecordStatus) error {
	if record.UID == "" {
		return nil
	}
	if equality.Semantic.DeepEqual(record.Status, status) {
		return r.verifyRecord(ctx, record, action)
	}
	changed := record.DeepCopy()
	changed.Status = status
	err := r.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(record, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("write HostRecord: %w", err)
	}
	return nil
}

// performAction requests the action of the decision and returns the decision with what the result changes.
func (r *Reconciler) performAction(ctx context.Context, host *metal3.BareMetalHost, obs observation, decision plan.Decision) plan.Decision {
	if decision.Action.Kind == plan.ActionNone {
		return decision
	}
	if err := r.callInstaller(ctx, obs, host, decision.Action); err != nil {
		ctrl.LoggerFrom(ctx).Info("Action refused", "action", decision.Action.Kind, "reason", plan.ErrorReasonText(err), "error", err.Error())
		return decision.WithActionError(obs.facts, err)
	}
	return decision.WithActionDone()
}

// callInstaller requests the action from the Installer.
func (r *Reconciler) callInstaller(ctx context.Context, obs observation, host *metal3.BareMetalHost, a plan.Action) error {
	target := obs.target
	switch a.Kind {
	case plan.ActionInspect:
		return obs.installer.Inspect(ctx, target, a.Attempt, a.Inspector)
	case plan.ActionErase:
		return obs.installer.Erase(ctx, target, a.Attempt, a.Erase)
	case plan.ActionCancel:
		return obs.installer.Cancel(ctx, target, a.Attempt)
	case plan.ActionSetPower:
		return obs.installer.SetPower(ctx, target, a.Power)
	case plan.ActionInstall:
		return obs.installer.Install(ctx, target, a.Attempt, hardware.InstallSpec{
			Image: a.Image, RootDevice: sessions.RootDevice(host.Spec.RootDeviceHints), GPUs: a.GPUs, Requirements: a.Requirements, PreviousRootDisk: a.PreviousRootDisk, AcceptedRootDisk: a.AcceptedRootDisk,
			ReadConfigDrive: r.readConfigDrive(obs, a.Attempt),
		})
	}
	return nil
}

// readConfigDrive returns what reads the documents of the attempt, for an Installer that must have them to begin. For any other one the boot service reads them
// from the claim's Secret, when the agent asks for them.
func (r *Reconciler) readConfigDrive(obs observation, attempt hardware.Attempt) func(context.Context) (hardware.ConfigDrive, error) {
	if !obs.facts.NeedsConfigDrive {
		return nil
	}
	return func(ctx context.Context) (hardware.ConfigDrive, error) {
		return r.ConfigDrives.ConfigDrive(ctx, obs.target.UID, attempt.Number)
	}
}

// writeFailure writes the error and the failing calls as they are after the action. It uses no lock: no other process writes these fields,
// and the installer may have written other fields meanwhile.
func (r *Reconciler) writeFailure(ctx context.Context, record *v1alpha1.HostRecord, before, after v1alpha1.HostRecordStatus) error {
	change := map[string]any{}
	if !equality.Semantic.DeepEqual(before.Error, after.Error) {
		change["error"] = after.Error
	}
	if !equality.Semantic.DeepEqual(before.FailingCalls, after.FailingCalls) {
		change["failingCalls"] = after.FailingCalls
	}
	if record.UID == "" || len(change) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": change})
	if err != nil {
		return fmt.Errorf("write the error of HostRecord: %w", err)
	}
	if err := r.Client.Status().Patch(ctx, record.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write the error of HostRecord: %w", err)
	}
	return nil
}

// dropAnnotations removes the annotations whose requests were carried out.
func (r *Reconciler) dropAnnotations(ctx context.Context, host *metal3.BareMetalHost, served []plan.Annotation) error {
	if len(served) == 0 {
		return nil
	}
	before := host.DeepCopy()
	for _, name := range served {
		delete(host.Annotations, string(name))
	}
	status := host.Status
	if err := r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("remove annotations: %w", err)
	}
	host.Status = status
	return nil
}

// finish writes the BareMetalHost's status and publishes the events.
func (r *Reconciler) finish(ctx context.Context, host *metal3.BareMetalHost, obs observation, d plan.Decision) (reconcile.Result, error) {
	after := host.DeepCopy()
	applyStatus(after, obs, d)
	if err := r.writeHardwareData(ctx, host, after); err != nil {
		return step.Retry(err).Result()
	}
	outcome := step.Done()
	if d.RequeueAfter > 0 {
		outcome = step.Wait(cmp.Or(d.WaitingFor, string(d.Status.State)), d.RequeueAfter)
	}
	if host.Status.OperationalStatus == "" {
		if err := r.writeFirstStatus(ctx, after); err != nil {
			return step.Retry(err).Result()
		}
		host = after
	}
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, host, after, d.Events, outcome)
}

// writeFirstStatus writes the complete status. The schema requires members, such as poweredOn, that a merge patch leaves out
// while they have their zero value.
func (r *Reconciler) writeFirstStatus(ctx context.Context, host *metal3.BareMetalHost) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": host.ResourceVersion}, "status": host.Status})
	if err != nil {
		return fmt.Errorf("write first status: %w", err)
	}
	if err := r.Client.Status().Patch(ctx, host.DeepCopy(), client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("write first status: %w", err)
	}
	return nil
}

// labelHost sets the host's labels to what its inventory says and returns the event about it. While a host is inspected or installed only its GPUs' labels are
// set, because nobody selects it then, and each write counts; the others follow before it is available.
func (r *Reconciler) labelHost(ctx context.Context, host *metal3.BareMetalHost, decision plan.Decision) ([]event.Event, error) {
	change := inventory.HostLabelChange
	if s := decision.Status.State; s == metal3.StateInspecting || s == metal3.StateProvisioning || s == metal3.StateProvisioned {
		change = inventory.GPULabelChange
	}
	labelling := change(host.Labels, decision.Record.Inventory)
	if labelling.IsEmpty() || !host.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	before := host.DeepCopy()
	for key, value := range labelling.Set {
		if host.Labels == nil {
			host.Labels = map[string]string{}
		}
		host.Labels[key] = value
	}
	for _, key := range labelling.Remove {
		delete(host.Labels, key)
	}
	status := host.Status
	if err := r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("label the host by its hardware: %w", err)
	}
	host.Status = status
	if labelling.Reason == "" {
		return nil, nil
	}
	return []event.Event{event.New(labelling.Warning, labelling.Reason, "Inspect", labelling.Message)}, nil
}

// isOlderThanRecord tells whether the record was written for a later generation of the host than the one that was read. Then
// another process reconciled the host before this one, with a cache that was further than this one's. If its generation asked
// for a power-off, for which a Node was deleted, a reconcile with the older generation would power the host on again.
func isOlderThanRecord(host *metal3.BareMetalHost, record *v1alpha1.HostRecord) bool {
	return record.Status.Power != nil && record.Status.Power.ObservedGeneration > host.Generation
}

// currentHost returns the host, read from the API server where isOlderThanRecord; nil: there is nothing left to do for it.
func (r *Reconciler) currentHost(ctx context.Context, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (*metal3.BareMetalHost, error) {
	if !isOlderThanRecord(host, record) {
		return host, nil
	}
	now := &metal3.BareMetalHost{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(host), now); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now.UID != host.UID || !isManaged(now) || hostFacts(now).Paused {
		return nil, nil
	}
	return now, nil
}

// verifyRecord returns a conflict unless the record is still the one that was read. It is for actions that switch the power
// without a write of the record, whose optimistic lock would fail otherwise.
func (r *Reconciler) verifyRecord(ctx context.Context, record *v1alpha1.HostRecord, action plan.ActionKind) error {
	switch action {
	case plan.ActionSetPower, plan.ActionCancel:
	default:
		return nil // the installer compares the attempt with that in the API server
	}
	var now v1alpha1.HostRecord
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(record), &now); err != nil {
		return fmt.Errorf("read HostRecord: %w", err)
	}
	if now.UID != record.UID || now.ResourceVersion != record.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("hostrecords").GroupResource(), record.Name, errors.New("it was changed since it was read"))
	}
	return nil
}
