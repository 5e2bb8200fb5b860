// Package machineos is the operating system on a simulated server's disk: what boots of it, what cloud-init or Ignition makes
// of the config drive beside it, which kernel modules are loaded, and which services systemd then starts.
//
// A disk boots as UEFI firmware sees it: a protective MBR, a GUID partition table whose checksums match (the copy at the
// disk's end serves when the first does not), and on it a root file system, ext4 or squashfs, that says what is baked
// into the image in /usr/lib/ingot/image.json. Boot loader and kernel are not run, and need not be there; the kernel's
// command line is what image.json says.
//
// cloud-init is its part that counts for a node: the data source ConfigDrive, found by the file system's label config-2;
// user data (package userdata), of it write_files, bootcmd, runcmd, SSH keys and scripts; network data (package netdata);
// the host name. Of the commands only systemctl, modprobe and the machine's programs do something. All of it but bootcmd
// runs once per instance id; what it wrote stays on the disk.
//
// Ignition (package ignition) takes the place of cloud-init in an image that has Ignition's dracut module, or whose
// os-release names a system that has nothing else: flatcar, rhcos, scos, or VARIANT_ID=coreos. It runs once, before the
// first boot: when the kernel comes up for good, its arguments, units and files are there. What it refuses keeps the
// system from coming up: ErrEmergency. Such images read no network data. One whose ignition.platform.id= is not openstack
// reads no config drive.
//
// Package kernel tells which modules that means, from the command line, modprobe.d and modules-load.d.
//
// systemd starts, in every boot, the units that are enabled, with what they pull in and in their order: a unit that requires
// one before it which fails is not started. A unit's command does something when it is one of the machine's programs, or a
// shell script that was written and calls one.
package machineos
