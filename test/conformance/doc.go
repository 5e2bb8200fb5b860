// Package conformance is the suite that every hardware.Installer passes.
//
// The test of an Installer passes a Harness to Run. The Harness makes Rigs: servers with the faults that a case needs, each with a
// clock that the case advances. The suite calls the Installer repeatedly, as a controller does, and checks the outcome, the reason,
// the power state and the contents of the disk.
package conformance
