// Package ipxe is a simulated server's network boot: it interprets boot documents as iPXE does (https://ipxe.org/scripting),
// the commands that boot services use, and loads what they name, byte by byte. An initrd is opened as the kernel would.
package ipxe
