// Package quota decides whether the NodeQuota of a namespace has room for a Machine's host.
//
// A Machine counts from its reservation on: the manager writes the Machine into the status of the NodeQuota before it writes the Machine into the host's
// consumerRef. The write is under the resourceVersion that was read before the Machines were listed, so of two managers that both find the last place
// free, the second one loses its write, reads again and finds the place taken. A reservation is dropped once the Machine counts by its host, once the
// Machine is gone, and some time after the Machine has given up its claim.
//
// Machines that wait for the quota go on in the order in which they were created. An older one that no limit would ever let through, or that only the
// limit of its own NodeType holds back, does not hold back the others; one that waits for GPUs does, because it would otherwise wait for ever while
// smaller ones take each GPU that becomes free.
package quota
