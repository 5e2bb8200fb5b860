// Package validation is the controller that validates the nodes of Machines and places and lifts their gate taint.
//
// It reads the Machine, its Node in the tenant's cluster, and the expectation in its rendering. Package controllers/plan/verdict decides.
// The taint of the Node is patched first. Then status.verdict and the condition Validated, which only this controller writes, are
// written. The patch of the Node has the resourceVersion that the verdict is based on, so that a Node that changed meanwhile is not
// patched.
//
// The ResourceSlices of DRA drivers are in the tenant's cache, and a change of a slice starts a reconcile of its node. DeviceClasses are
// read only before a gate is lifted, and are cached for a short time for all nodes of a tenant.
//
// While a tenant cannot be reached, Validated is Unknown and no taint is changed.
package validation
