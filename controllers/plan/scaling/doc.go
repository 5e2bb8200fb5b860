// Package scaling decides how many Machines to create for a NodePool, or which ones to delete.
//
// When replicas decreases, Machines that are not Ready are deleted first, then those with an outdated revision, then the newest ones.
package scaling
