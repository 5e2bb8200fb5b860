package tenantaccess

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Error tells why a tenant cannot be used now.
type Error struct {
	// Tenant is the TenantCluster.
	Tenant types.NamespacedName
	// Reason is one of the reasons of TenantCluster's Ready condition.
	Reason string
	// Err says what was expected, what was seen and where to look.
	Err error
}

// Error names the tenant and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("TenantCluster %s: %s: %v", e.Tenant, e.Reason, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// classify finds the reason of a failed call to the tenant.
func classify(tenant types.NamespacedName, doing string, err error) *Error {
	reason := v1alpha1.ReasonTenantUnreachable
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		reason = v1alpha1.ReasonTenantUnauthorized
	}
	return &Error{Tenant: tenant, Reason: reason, Err: fmt.Errorf("%s: %w", doing, err)}
}
