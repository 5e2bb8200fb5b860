// Package entitlement is the shell that keeps, in the clusters that tenants share, the objects that enforce Entitlements.
//
// It writes by server-side apply under a field manager of its own, only objects that have the uid of their Entitlement in the label
// ingot.dev/entitlement, and removes them when the Entitlement is deleted. What to write is decided in controllers/plan/entitlement.
package entitlement
