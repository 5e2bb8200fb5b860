// Package machineos is the operating system on a simulated server's disk: what boots of it, what cloud-init makes of the
// config drive beside it, and which services systemd then starts.
//
// A disk boots as UEFI firmware sees it: a protective MBR, a GUID partition table whose checksums match (the copy at the
// disk's end serves when the first does not), and on it a root file system, ext4 or squashfs, that says what is baked
// into the image in /usr/lib/ingot/image.json. Boot loader and kernel are not run, and need not be there.
//
// cloud-init is its part that counts for a node: the data source ConfigDrive, found by the file system's label config-2;
// user data that begins with #cloud-config, of it write_files, bootcmd and runcmd; the host name. Of the commands only
// systemctl and the machine's programs do something. All of it runs once per instance id; what it wrote stays on the disk.
//
// systemd starts, in every boot, the units that are enabled, with what they pull in and in their order: a unit that requires
// one before it which fails is not started. A unit's command does something when it is one of the machine's programs, or a
// shell script that was written and calls one.
package machineos
