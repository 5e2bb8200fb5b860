// Package scaling decides how many Machines to create for a NodePool, or which ones to delete.
//
// When replicas decreases, Machines without a host are deleted first, then those that are not Ready, then those with an outdated revision, then the
// newest ones. A Machine that nothing is known of is deleted only when all are. No more Machines are made than there are hosts for, and one that waits for the next host.
package scaling
