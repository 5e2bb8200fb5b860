// Package pack builds a disk image from a directory tree, and the OSImage that refers to it. The same tree results in the same bytes on
// every machine and at any time. Package recipe decides what the image contains.
//
// Of a file it keeps type, mode, owner, links, device numbers and security.capability. It does not keep times and other extended
// attributes; SELinux labels are set at the first boot.
package pack
