// Package ramdisk builds the initial ramdisk that the boot service serves together with a kernel: a cpio archive in the "newc" format,
// compressed with zstd, whose /init is the agent. The same program always results in the same bytes.
//
// The format is described in the kernel's Documentation/driver-api/early-userspace/buffer-format.rst. The kernel must be built with
// CONFIG_RD_ZSTD, as the kernels of distributions are since Linux 5.9.
package ramdisk
