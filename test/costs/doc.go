// Package costs measures what one Machine costs: a fleet of simulated servers goes through a whole life, and the requests that the
// manager made are counted from the audit logs of the clusters. The table costs.md holds the last figures, and a test fails when a
// Machine costs more than the table says, or more in a large fleet than in a small one.
//
//	make costs                  measure and compare with the table
//	make costs ARGS=-update     measure and write the table
//
// Counts are what is compared, because they do not depend on the machine. Times, CPU and memory are printed.
package costs
