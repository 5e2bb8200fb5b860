package servingcert

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/servingcert"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// approve approves a request, and returns what is reported. The request is decided about again as the API server has it now: the cache has a part of it.
func (r *Reconciler) approve(ctx context.Context, obs observation, chosen servingcert.Request) (servingcert.Decision, error) {
	now := r.Clock.Now()
	var stored certificatesv1.CertificateSigningRequest
	if err := obs.access.Client.Get(ctx, client.ObjectKey{Name: chosen.Name}, &stored); err != nil {
		return refused(chosen.Name, err)
	}
	decision := servingcert.Decide(now, obs.machine, []servingcert.Request{servingcert.RequestOf(&stored)})
	if decision.Approve == nil || stored.UID != chosen.UID {
		return decision, nil
	}
	stored.Status.Conditions = append(stored.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ApprovedByIngot", LastUpdateTime: metav1.NewTime(now),
		Message: "node name and addresses are those that Ingot knows of the Machine",
	})
	if _, err := obs.access.Clientset.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, stored.Name, &stored, metav1.UpdateOptions{}); err != nil {
		return refused(chosen.Name, err)
	}
	decidedRequests.WithLabelValues(v1alpha1.ReasonServingCertificateApproved).Inc()
	return decision, nil
}

// refused returns what is reported of a request that the tenant's API server does not let the manager approve, or the error of a call to be repeated. A
// request that is gone says nothing.
func refused(request string, err error) (servingcert.Decision, error) {
	switch {
	case apierrors.IsNotFound(err):
		return servingcert.Decision{}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsUnauthorized(err):
		return servingcert.Decision{
			Reason: v1alpha1.ReasonServingCertificateForbidden, After: forbiddenPause,
			Message: fmt.Sprintf("CertificateSigningRequest %s names what it may, and the tenant's API server does not let Ingot approve it: %s. Expected are the rights that "+
				"ingot tenant add --serving-certificates --tenant-side prints, and no webhook of the cluster against it", request, input.Line(err.Error(), tenantaccess.MaxQuoted)),
		}, nil
	}
	return servingcert.Decision{}, fmt.Errorf("approve CertificateSigningRequest %s: %w", request, err)
}
