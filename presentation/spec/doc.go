// Package spec holds the types that all presentation modes share: the Request that a mode resolves, the Refusal that says why
// a request cannot be resolved, and the comparison of versions that both need. The plan that a mode returns is
// v1alpha1.NodePlan.
package spec
