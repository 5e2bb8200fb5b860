// Package kernel reads a Linux kernel and its modules as distributions package them, and finds which modules and firmware files a device
// needs.
//
// Everything is read from the modules themselves (their section .modinfo), because the indexes that depmod makes are not part of a package.
package kernel
