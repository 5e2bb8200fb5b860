// Package nodeidentity tells whose Node an object of a tenant's cluster is: a Machine's, of its present installation or of an earlier one, or another's.
//
// Kubelet registers with the providerID of its installation, which nobody can change afterwards, and that decides. In a cluster whose own cloud provider
// sets providerIDs kubelet registers without one. A Node there is a Machine's by three things together:
//
//   - its name, by which it was looked up;
//   - the system UUID that kubelet read from DMI, which must be the one that Ingot's agent read there. What a BMC reports is not compared, because its byte
//     order and its source vary;
//   - the boot: the Node must have been created after the agent had asked for the documents of this installation. The agent runs then, so that nothing
//     earlier runs on the server, and the image is still to be written. A Node that an earlier system has registered is older than that by the boot of the
//     agent, and the Node of this installation is younger by the writing of the image and another boot: minutes on either side, by which the clocks of two
//     clusters may differ.
//
// A Node that was found to be the Machine's once is known by its uid.
package nodeidentity
