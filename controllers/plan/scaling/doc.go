// Package scaling decides how many Machines a NodePool lacks, and which it gives up.
//
// When a pool shrinks, what is worth least goes first: Machines that are not Ready, then those with an outdated
// revision, then the newest.
package scaling
