package servingcert

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// approvalInterval is the shortest time between two approvals for one Machine. A kubelet needs one certificate in months; without the interval, whoever
// holds the credentials of one node has certificates issued as fast as requests can be created.
const approvalInterval = time.Minute

// UserPrefix begins the user name of a kubelet, and the common name of its certificates.
const UserPrefix = "system:node:"

// Request is a CertificateSigningRequest as the API server stored it. Username and Groups are those of whoever created it: the API server sets them.
type Request struct {
	// Name and UID identify the object.
	Name string
	UID  types.UID
	// CreatedAt is when it was created.
	CreatedAt time.Time
	// Signer is the signer's name.
	Signer string
	// Username and Groups of the creator.
	Username string
	Groups   []string
	// Usages that the certificate is to have.
	Usages []certificatesv1.KeyUsage
	// PEM is the PKCS#10 request.
	PEM []byte
	// IsDecided is true when it is approved, denied or failed.
	IsDecided bool
	// ApprovedAt is when it was approved; zero: it is not.
	ApprovedAt time.Time
}

// RequestOf returns what is decided by of an object.
func RequestOf(o *certificatesv1.CertificateSigningRequest) Request {
	out := Request{
		Name: o.Name, UID: o.UID, CreatedAt: o.CreationTimestamp.Time, Signer: o.Spec.SignerName, Username: o.Spec.Username, Groups: o.Spec.Groups,
		Usages: o.Spec.Usages, PEM: o.Spec.Request,
	}
	for _, c := range o.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateApproved:
			out.IsDecided, out.ApprovedAt = true, c.LastUpdateTime.Time
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			out.IsDecided = true
		}
	}
	return out
}

// Machine is what Ingot knows of the Machine whose Node has the name that requests are made under.
type Machine struct {
	// Node is the name of its Node.
	Node string
	// Server is the URL by which Ingot reaches the cluster's API server.
	Server string
	// HasNode is true while a Node is bound to the Machine and its server runs it.
	HasNode bool
	// Addresses of its host.
	Addresses []Address
	// Elsewhere has the hosts that other Machines of the cluster have, by the addresses that are recorded for them.
	Elsewhere map[netip.Addr]string
}

// Decision is what is done about the requests of a Machine.
type Decision struct {
	// Approve is the request that is approved now; nil: none is.
	Approve *Request
	// Reason is that of the condition ServingCertificateApproved; empty: the condition stays as it is.
	Reason string
	// Message of the condition.
	Message string
	// After is when to decide again without an event; zero: not before one.
	After time.Duration
}

// Decide decides about the requests that were created under the name of the Machine's Node. Of those that nobody has decided about only the newest counts:
// a kubelet waits for no other one. An API server tells the second of a creation: of those of one second the one that can be approved counts.
func Decide(now time.Time, m Machine, requests []Request) Decision {
	ours := slices.DeleteFunc(slices.Clone(requests), func(r Request) bool {
		return r.Signer != certificatesv1.KubeletServingSignerName || r.Username != UserPrefix+m.Node
	})
	if len(ours) == 0 || !m.HasNode {
		return Decision{}
	}
	newest := slices.MaxFunc(ours, func(a, b Request) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.preference(m), b.preference(m)), cmp.Compare(a.Name, b.Name))
	})
	switch {
	case newest.IsDecided && newest.ApprovedAt.IsZero():
		return Decision{}
	case newest.IsDecided:
		return approved(newest)
	}
	if problem := newest.problem(m); problem != "" {
		return Decision{
			Reason:  v1alpha1.ReasonServingCertificateUnapproved,
			Message: fmt.Sprintf("CertificateSigningRequest %s is not approved: %s", newest.Name, problem),
		}
	}
	var last time.Time
	for _, r := range ours {
		if r.ApprovedAt.After(last) {
			last = r.ApprovedAt
		}
	}
	if left := last.Add(approvalInterval).Sub(now); left > 0 {
		return Decision{After: min(left, approvalInterval)}
	}
	out := approved(newest)
	out.Approve = &newest
	return out
}

// preference is higher for a request that a kubelet can wait for, and highest for one that can be approved.
func (r Request) preference(m Machine) int {
	switch {
	case r.IsDecided:
		return 0
	case r.problem(m) != "":
		return 1
	}
	return 2
}

// approved is the decision about a request that is approved.
func approved(r Request) Decision {
	return Decision{Reason: v1alpha1.ReasonServingCertificateApproved, Message: fmt.Sprintf("CertificateSigningRequest %s is approved: its names are those of the Machine", r.Name)}
}
