// Package tools pins the programs that the Makefile builds: the generator of CRDs, RBAC and deep copies, the test runner, and
// the linter. A module of its own keeps what they import out of the product's.
package tools
