// Package hostimport makes BareMetalHosts and the Secrets of their BMCs of a table, which is how a delivery of servers comes.
//
// Everything is checked before anything is printed, since half a hall that was applied is harder to mend than a line of a
// file: one wrong line, and there is no output but the list of all that is wrong. Passwords stand in files beside the table and
// appear nowhere but in the Secrets; no message quotes an address either, because some people write passwords into addresses.
package hostimport
