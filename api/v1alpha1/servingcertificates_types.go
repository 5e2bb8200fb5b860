package v1alpha1

// ServingCertificates is where kubelets have their serving certificates from.
type ServingCertificates string

// The ways to a serving certificate.
const (
	// ServingCertificatesSelfSigned: each kubelet makes its own.
	ServingCertificatesSelfSigned ServingCertificates = "SelfSigned"
	// ServingCertificatesApprovedByIngot: each kubelet requests one of the cluster, and Ingot approves the request.
	ServingCertificatesApprovedByIngot ServingCertificates = "ApprovedByIngot"
)

// MustApproveServingCertificates reports whether Ingot has to approve the requests of the cluster's kubelets.
func (s TenantClusterSpec) MustApproveServingCertificates() bool {
	return s.ServingCertificates == ServingCertificatesApprovedByIngot
}

// TenantCluster's condition beside Ready.
const (
	// ConditionServingCertificatesApproved: the manager sees the requests for serving certificates of the cluster's kubelets and may approve them. It exists
	// where spec.servingCertificates is ApprovedByIngot; Ready does not depend on it.
	ConditionServingCertificatesApproved = "ServingCertificatesApproved"
)

// Reasons of TenantCluster's ServingCertificatesApproved condition.
const (
	// ReasonApprovingRequests: the requests are watched, and those that name what Ingot knows of their Machine are approved.
	ReasonApprovingRequests = "ApprovingRequests"
	// ReasonApprovalRightsMissing: the kubeconfig's user may not see or approve the requests; the message says which rights are missing.
	ReasonApprovalRightsMissing = "ApprovalRightsMissing"
	// ReasonRequestsUnwatched: the requests cannot be seen now; the message says why.
	ReasonRequestsUnwatched = "RequestsUnwatched"
)

// Machine's condition about its serving certificate.
const (
	// ConditionServingCertificateApproved: the last request of the node's kubelet for a serving certificate is approved. It exists once there was a request,
	// and only where the TenantCluster's spec.servingCertificates is ApprovedByIngot; Ready does not depend on it.
	ConditionServingCertificateApproved = "ServingCertificateApproved"
)

// Reasons of Machine's ServingCertificateApproved condition.
const (
	ReasonServingCertificateApproved = "ServingCertificateApproved"
	// ReasonServingCertificateUnapproved: the request names something else than what Ingot knows of the Machine, and is left to the cluster's
	// administrators; the message says what was expected and seen.
	ReasonServingCertificateUnapproved = "ServingCertificateUnapproved"
	// ReasonServingCertificateForbidden: the tenant's API server does not let Ingot approve the request; the message has its answer.
	ReasonServingCertificateForbidden = "ServingCertificateForbidden"
)
