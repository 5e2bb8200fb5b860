// Package leaderlease judges, by the Lease of the leader election, whether an ingot-manager works.
package leaderlease
