// Package conformance is the suite that every hardware.Installer passes, and the small Redfish BMC it and the adapters'
// tests run against. It belongs to tests: product code does not import it.
//
// An installer's test gives Run a Harness, which makes a Rig: one server with the faults a test asks for, in a world where
// time passes only when told. The suite then calls the installer as a controller would, again and again, and judges
// what becomes of the server: outcome, reason, power, and what is on the disk.
package conformance
