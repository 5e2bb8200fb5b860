// Package ramdisk makes the initial ramdisk that the boot service hands out with a kernel: a cpio archive in the "newc"
// format, compressed with zstd, whose /init is the installer. The same program gives the same bytes.
//
// The format is that of the kernel's Documentation/driver-api/early-userspace/buffer-format.rst. The kernel must be
// built with CONFIG_RD_ZSTD, as those of the distributions are since Linux 5.9.
package ramdisk
