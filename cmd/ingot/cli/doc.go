// Package cli holds what the commands of ingot share: exit statuses, errors and tables.
//
// The exit status is 0 when the command is done, 1 when it failed, and 2 when the command line was not understood. A failure is
// one line that begins with the name of the program. When the command line was not understood, the usage line follows.
package cli
