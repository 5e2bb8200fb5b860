// Package qcow2 reads the disk in an image of QEMU's format qcow2, versions 2 and 3, as docs/interop/qcow2.txt of QEMU describes it.
//
// Images come from strangers. An image cannot name other files here: backing files and external data files are refused, because an image could
// otherwise carry any file of the machine that reads it (CVE-2015-5163). Every offset is checked against the file, and no part of the file is used
// twice.
package qcow2
