// Package cli is what ingot's commands have in common: how a program of many commands ends, and what it says then.
//
// Exit status: 0 done, 1 failed, 2 not understood. A failure is one line that begins with "ingot: "; what was not
// understood gets the usage line below it, not a page.
package cli
