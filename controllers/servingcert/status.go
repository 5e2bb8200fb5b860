package servingcert

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/servingcert"
	"github.com/ingot-dev/ingot/controllers/step"
)

// decidedRequests has no label that names a node or a tenant: their number is bounded.
var decidedRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "ingot_serving_certificate_requests_total", Help: "Requests for serving certificates of kubelets that were approved, that were left to the cluster's administrators, or whose approval is forbidden.",
}, []string{"reason"})

func init() { metrics.Registry.MustRegister(decidedRequests) }

// report writes the condition of the Machine, where there is something to say.
func (r *Reconciler) report(ctx context.Context, m *v1alpha1.Machine, d servingcert.Decision) (reconcile.Result, error) {
	outcome := step.Done()
	if d.After > 0 {
		outcome = step.Wait("a request for a serving certificate", d.After)
	}
	after := m.DeepCopy()
	if d.Reason != "" {
		status := metav1.ConditionFalse
		if d.Reason == v1alpha1.ReasonServingCertificateApproved {
			status = metav1.ConditionTrue
		}
		step.SetCondition(&after.Status.Conditions, after.Generation, r.Clock.Now(), v1alpha1.ConditionServingCertificateApproved, status, d.Reason, d.Message)
	}
	changes := step.ConditionEvents(m.Status.Conditions, after.Status.Conditions, "ApproveServingCertificate", v1alpha1.ConditionServingCertificateApproved)
	for _, c := range changes {
		if c.Reason == v1alpha1.ReasonServingCertificateApproved {
			continue // It is counted when the request is approved, also where the one before was.
		}
		decidedRequests.WithLabelValues(c.Reason).Inc()
	}
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, m, after, changes, outcome)
}
