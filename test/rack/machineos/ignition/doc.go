// Package ignition is Ignition on a simulated server: it reads a configuration of the versions 3.0.0 to 3.4.0 with
// Ignition's own parser and validator, and computes how it changes a disk before the first boot: files,
// links and directories, units, users' keys and the kernel's command line.
//
// Content comes from data: URLs alone: nothing is fetched. Partitions, RAID, file systems, LUKS, groups and owners are
// taken as made. /usr cannot be written to, but for /usr/local where that is a link to /var.
//
// A configuration that Ignition refuses, or a file that it cannot make, keeps the system in the emergency shell of its
// initial ramdisk. No error quotes content, which may be secret.
package ignition
