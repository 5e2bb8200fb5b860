// Package kernel computes which modules a simulated server's kernel has loaded, and with which parameters. It reads the command
// line, modprobe.d(5) and modules-load.d(5) as kmod and systemd-modules-load do.
//
// A blacklisted module is not loaded for a device and not by modules-load.d, and still by modprobe and as another's soft
// dependency; what the command line's module_blacklist= names is never loaded. rd.driver.blacklist= is dracut's and ends
// with the initial ramdisk. Dependencies between modules are not modelled, nor is what is baked into the initial ramdisk.
package kernel
