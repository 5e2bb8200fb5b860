// Package nodeidentity tells whose Node an object of a tenant's cluster is: a Machine's, of its present installation or of an earlier one, or another's.
//
// Kubelet registers with the providerID of its installation, which nobody can change afterwards, and that decides. In a cluster whose own cloud provider
// sets providerIDs kubelet registers without one. A Node there is a Machine's by three things together:
//
//   - its name, by which it was looked up;
//   - the system UUID that kubelet read from DMI, which must be the one that Ingot's agent read there. What a BMC reports is not compared, because its byte
//     order and its source vary;
//   - the label ingot.dev/installation, which kubelet sets when it registers and never changes: it names the claim and the attempt. Ages prove nothing: the
//     tenant's cluster has another clock.
//
// A Node that was found to be the Machine's once is known by its uid.
package nodeidentity
