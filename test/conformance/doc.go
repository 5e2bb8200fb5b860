// Package conformance is the suite that every hardware.Installer passes.
//
// The test of an Installer gives Run a Harness, which makes a Rig: one server with the faults that a test asks for, and a clock
// that the test advances. The suite then calls the Installer as a controller does, again and again, and checks the outcome, the
// reason, the power, and what is on the disk.
package conformance
