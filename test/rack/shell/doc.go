// Package shell runs the shell scripts of a simulated server: a real POSIX shell over files and programs that are the
// server's alone. Nothing of the machine that runs the simulation is read, written or started.
//
// The few programs that scripts need beside the machine's own are here (cat, grep, mv, sed, wc, basename, readlink, sleep, which takes no
// time); all others that nobody knows do nothing and succeed.
package shell
