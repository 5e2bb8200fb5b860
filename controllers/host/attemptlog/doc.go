// Package attemptlog stores the end of the log of the agent that last worked on a host. It has an object of its own for each host, a ConfigMap that the
// host's HostRecord owns: a HostRecord is in the memory of every replica and is read with every list, and a log of 64 KiB is read by a person, once.
// The log is compressed, and no ConfigMap is cached.
package attemptlog
