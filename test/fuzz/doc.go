// Fuzz runs every fuzz target of the module, one after the other, each for a while, and says how to repeat what it finds.
//
// Targets are found in the source, so that none is left out. What a target finds is kept by go test in the package's testdata/fuzz, where it is a test from then
// on; inputs that only reach new code are kept in Go's cache, from which the next run goes on.
package main
