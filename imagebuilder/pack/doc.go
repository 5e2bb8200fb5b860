// Package pack turns a directory tree into a disk image that is ready to be served, and into the OSImage that points at
// it. The same tree gives the same bytes, on every machine and on every day; what goes where is package recipe's.
//
// Of a file it keeps kind, mode, owner, links, device numbers and security.capability; other extended attributes and
// times it does not: SELinux labels are for the first boot to set.
package pack
