package machine

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/step"
)

// cacheDelay is the time that the cache gets to receive what was just written.
const cacheDelay = 50 * time.Millisecond

// secretRecheckInterval is how often a Secret is read again that a person must create: Secrets are not watched.
const secretRecheckInterval = 15 * time.Second

// finish writes the status, publishes the events and returns when to reconcile again.
func (r *Reconciler) finish(ctx context.Context, obs *observation, d lifecycle.Decision, failure error) (reconcile.Result, error) {
	before, after := obs.machine, obs.machine.DeepCopy()
	after.Status = d.Status
	if step.IsConflict(failure) {
		// The decision rests on an older state, so nothing of it is written or published.
		return step.Retry(failure).Result()
	}
	events := append(d.Events, obs.warnings...)
	end := outcome(d, failure)
	var missing *documents.Unreadable
	switch {
	case errors.As(failure, &missing):
		reportMissingSecret(&after.Status, obs.facts, missing)
		events, end = step.ConditionEvents(before.Status.Conditions, after.Status.Conditions, string(d.Status.Phase), v1alpha1.ConditionReady), step.Wait(missing.Message, secretRecheckInterval)
	case failure != nil:
		after.Status.NodeMetadata = before.Status.NodeMetadata // what was not placed cannot be removed
		reportFailure(&after.Status, obs.facts, failure)
	}
	result, err := step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, before, after, events, end)
	if err == nil && before.Status.Phase != after.Status.Phase {
		recordPhaseDuration(before.Status, obs.facts.Now)
	}
	return result, err
}

func outcome(d lifecycle.Decision, failure error) step.Outcome {
	switch {
	case failure != nil:
		return step.Retry(failure)
	case d.Requeue:
		return step.Wait("the planner decides again on the written status", cacheDelay)
	case d.RequeueAfter > 0:
		return step.Wait(d.Status.WaitingFor, d.RequeueAfter)
	default:
		return step.Done()
	}
}

// reportMissingSecret reports in the status which Secret the installation waits for. The text does not depend on the time, so
// that the status is written only once.
func reportMissingSecret(s *v1alpha1.MachineStatus, f lifecycle.Facts, missing *documents.Unreadable) {
	s.WaitingFor = input.Line(missing.Message, lifecycle.MaxWaitingFor)
	for _, condition := range []string{v1alpha1.ConditionProvisioned, v1alpha1.ConditionReady} {
		step.SetCondition(&s.Conditions, f.Machine.Generation, f.Now, condition, metav1.ConditionFalse, v1alpha1.ReasonNodeSecretMissing, missing.Message)
	}
}

// reportFailure reports in the status what failed. Without it the status would say only that the Machine is being worked on.
func reportFailure(s *v1alpha1.MachineStatus, f lifecycle.Facts, failure error) {
	s.WaitingFor = input.Line(failure.Error(), lifecycle.MaxWaitingFor)
	if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionFalse {
		step.SetCondition(&s.Conditions, f.Machine.Generation, f.Now, v1alpha1.ConditionReady, ready.Status, ready.Reason, failure.Error())
	}
}

var (
	phaseSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ingot_machine_phase_seconds",
		Help:    "How long Machines stayed in a phase before they left it.",
		Buckets: prometheus.ExponentialBuckets(0.5, 2, 16),
	}, []string{"phase"})
	actions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_machine_actions_total",
		Help: "Side effects of Machines' lives, by kind and whether they succeeded.",
	}, []string{"action", "succeeded"})
)

func init() { metrics.Registry.MustRegister(phaseSeconds, actions) }

func countAction(kind lifecycle.ActionKind, err error) {
	succeeded := "true"
	if err != nil {
		succeeded = "false"
	}
	actions.WithLabelValues(string(kind), succeeded).Inc()
}

// recordPhaseDuration adds the time that the Machine spent in the phase that it leaves to the metric.
func recordPhaseDuration(left v1alpha1.MachineStatus, now time.Time) {
	if n := len(left.Timeline); n > 0 {
		phaseSeconds.WithLabelValues(string(left.Phase)).Observe(now.Sub(left.Timeline[n-1].At.Time).Seconds())
	}
}
