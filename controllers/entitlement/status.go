package entitlement

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/step"
)

// rereadAfter is how often the shared cluster is read again: its claims and namespaces are not watched.
const rereadAfter = 30 * time.Second

// finish reports what has happened to claims, and writes the status.
func (r *Reconciler) finish(ctx context.Context, obs observation, p *problem) (reconcile.Result, error) {
	now := r.Clock.Now()
	after := obs.entitlement.DeepCopy()
	status := &after.Status
	status.ObservedGeneration, status.ObjectsUID = after.Generation, after.ObjectsUID()
	status.Classes = entitlement.Report(obs.entitlement, obs.plan.Classes, len(obs.input.Namespaces), obs.use.Known, metav1.NewTime(now))
	var unreported error
	if obs.use.Seen != nil {
		status.Namespaces = int32(len(obs.input.Namespaces))
		unreported = r.report(ctx, obs, status)
		within := entitlement.WithinLimits(obs.plan.Classes, obs.use.Uses)
		step.SetCondition(&status.Conditions, after.Generation, now, within.Type, within.Status, within.Reason, within.Message)
	}
	// What waited is not known to wait on.
	if !obs.use.IsUnread {
		status.Waits = obs.use.waits
	}
	is, reason, message := metav1.ConditionTrue, v1alpha1.ReasonEnforced, enforcedText(obs)
	again := rereadAfter
	if p != nil {
		is, reason, message = p.status, p.reason, "NOT ENFORCED: "+p.message
		again = cmp.Or(p.again, again)
	}
	step.SetCondition(&status.Conditions, after.Generation, now, v1alpha1.ConditionEnforced, is, reason, message)
	if p == nil {
		is, reason, message = ready(status.Classes)
		again = rereadUnread(again, obs.use.IsUnread)
	}
	step.SetCondition(&status.Conditions, after.Generation, now, v1alpha1.ConditionReady, is, reason, message)
	changes := changesOf(obs.entitlement.Status.Conditions, status.Conditions)
	outcome := step.Wait("claims and namespaces may change", again)
	if unreported != nil {
		outcome = step.Retry(unreported)
	}
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.entitlement, after, changes, outcome)
}

// changesOf returns the events of what has changed.
func changesOf(before, after []metav1.Condition) []event.Event {
	types := []string{v1alpha1.ConditionEnforced, v1alpha1.ConditionReady}
	// That nobody has too much is no news unless somebody had.
	if meta.FindStatusCondition(before, v1alpha1.ConditionWithinLimits) != nil || meta.IsStatusConditionFalse(after, v1alpha1.ConditionWithinLimits) {
		types = append(types, v1alpha1.ConditionWithinLimits)
	}
	// For some moments after each new policy it is nothing to warn of that a server does not use it.
	return slices.DeleteFunc(step.ConditionEvents(before, after, "Enforce", types...), func(e event.Event) bool { return e.Reason == v1alpha1.ReasonNotProvedYet })
}

// enforcedText says what is enforced, and which namespaces are named that do not exist.
func enforcedText(obs observation) string {
	spec := obs.entitlement.Spec
	text := "the shared cluster refuses what tenant " + spec.Tenant + " is not entitled to"
	if missing := entitlement.Missing(spec.Namespaces, obs.input.Namespaces); len(missing) > 0 {
		text += "; of spec.namespaces.names it has none named " + strings.Join(missing, ", ")
	}
	return text
}

// rereadUnread returns when to look again. While the claims have not been read, that is soon.
func rereadUnread(again time.Duration, isUnread bool) time.Duration {
	if isUnread {
		return time.Second
	}
	return again
}

// report makes the Events of what has changed, and sets the holdings once all are made.
func (r *Reconciler) report(ctx context.Context, obs observation, status *v1alpha1.EntitlementStatus) error {
	if err := r.reportChanges(ctx, obs.entitlement, obs.use.changes); err != nil {
		// All of them, for an end whose beginning is known counts alone. An Event that is there is not made again.
		r.journal.putBack(clusterOf(obs.entitlement), obs.use.changes, r.Clock.Now())
		return err
	}
	r.journal.keep(obs.entitlement.UID, obs.use.holdings, obs.input.Namespaces)
	status.Holdings = obs.use.holdings[:min(len(obs.use.holdings), v1alpha1.MaxHoldings)]
	return nil
}

// ready returns the condition Ready of an Entitlement that is enforced: that of the first class that gives nothing.
func ready(classes []v1alpha1.EntitledClassStatus) (metav1.ConditionStatus, string, string) {
	if len(classes) == 0 {
		return metav1.ConditionTrue, v1alpha1.ReasonReady, "no classes: a fence with nothing in it"
	}
	for _, c := range classes {
		if a := meta.FindStatusCondition(c.Conditions, v1alpha1.ConditionAvailable); a.Status != metav1.ConditionTrue {
			return a.Status, a.Reason, "class " + c.Name + ": " + a.Message
		}
	}
	return metav1.ConditionTrue, v1alpha1.ReasonReady, "every class has devices"
}
