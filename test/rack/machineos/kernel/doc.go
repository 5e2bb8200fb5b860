// Package kernel says which modules a simulated server's kernel has loaded, and with which parameters: what its command
// line, modprobe.d(5) and modules-load.d(5) ask for, as kmod and systemd-modules-load read them.
//
// A blacklisted module is not loaded for a device and not by modules-load.d, and still by modprobe and as another's soft
// dependency; what the command line's module_blacklist= names is never loaded. rd.driver.blacklist= is dracut's and ends
// with the initial ramdisk. Dependencies between modules are not modelled, nor is what is baked into the initial ramdisk.
package kernel
