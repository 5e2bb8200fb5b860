// Package network brings up the network of the installer's ramdisk: the interface that the server boots from, with a VLAN or a bond where the
// boot document names one, and addresses from DHCP, from router advertisements or as given.
//
// The settings stand on the kernel command line, so that they are the same for a boot document, a unified kernel image and virtual media.
package network
