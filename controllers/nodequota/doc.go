// Package nodequota is the shell that gives the Machines of a namespace their places under its NodeQuota, and reports what is used.
//
// A namespace is decided about at most once a second, for all its Machines, with one write of the NodeQuota's status. Package plan/quota decides, and
// says what a Machine does to ask for a place and to use it.
package nodequota
