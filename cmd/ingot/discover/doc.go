// Package discover implements `ingot host discover`, which finds the Redfish services in a range of addresses that the user names and prints the
// table that `ingot host import` reads.
//
// Every address is asked for its service root without credentials. Only with a user and a password does the command log in, once at each BMC,
// and it stops after a few refusals, so that wrong credentials lock no account. What services send is shown only after everything that a
// terminal or a table would take for a command has been removed from it.
package discover
