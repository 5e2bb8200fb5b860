// Package nodequota is the shell that reports in a NodeQuota's status what its namespace uses, and drops reservations that do not count any more.
//
// It decides about no claim: the machine controller does, and writes its reservation into the same status under the lock of the NodeQuota. A claim and
// this report may conflict; the one that lost is made again.
package nodequota
