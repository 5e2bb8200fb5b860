// Package rootfs holds the files of a root file system that is being made: those of a tar archive, and changes to them.
//
// Owners, modes, devices, links and capabilities stay as the archive has them, although nothing is unpacked. So nobody has to be root to make
// an image. The content of the files stays in the archive until it is read.
package rootfs
