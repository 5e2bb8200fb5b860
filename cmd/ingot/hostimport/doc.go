// Package hostimport implements `ingot host import`, which makes BareMetalHosts and the Secrets of their BMCs from a table.
//
// The whole table is checked before anything is printed, because a table that was applied by half is harder to correct than a line
// of a file. When a line is wrong, the only output is the list of all that is wrong. Passwords are in files beside the table and
// are written to the Secrets alone. No message quotes an address, because some people write passwords into addresses.
package hostimport
