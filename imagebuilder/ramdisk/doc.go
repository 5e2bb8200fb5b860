// Package ramdisk builds what the boot service serves to install servers: a kernel and an initial ramdisk, which is a cpio archive in the "newc"
// format, compressed with zstd. Its /init is the agent; with it come the modules of servers' network and storage controllers with their
// firmware, and the certificates that the agent trusts. The same inputs always result in the same bytes.
//
// The format is described in the kernel's Documentation/driver-api/early-userspace/buffer-format.rst. The kernel must be built with
// CONFIG_RD_ZSTD, as the kernels of distributions are since Linux 5.9.
//
// # Modules
//
// All modules of the directories in selection.go are included with what they depend on, not only those of one rack: a ramdisk is built once,
// and a server that is racked next year boots it too. The agent loads those whose aliases match the devices. The indexes have the
// formats that depmod writes (modules.dep(5)), so that other programs can read them.
package ramdisk
