// Package validation judges the nodes of Machines and keeps their gate.
//
// It observes the Machine, the Node that it became in the tenant's cluster, and what was promised; package
// controllers/plan/verdict decides; then the taint is patched, and then status.verdict and the condition Validated, which
// belong to this controller, are written. A Node is patched only under the resourceVersion that was judged, so a verdict
// never acts on a node that changed meanwhile.
//
// What DRA drivers publish comes from the tenant's watched ResourceSlices, and a changed slice brings its node here.
// DeviceClasses are read only while a node is not admitted, and one read serves all waiting nodes of a tenant.
//
// While a tenant cannot be reached nothing is known: Validated is Unknown and no taint is touched.
package validation
