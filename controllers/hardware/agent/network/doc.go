// Package network brings up the network of the installer's ramdisk: the interface that the server boots from, with the VLAN, the bond and the
// addresses that the kernel command line names, or with addresses from DHCP and router advertisements.
//
// Nothing is given up before the attempt ends: a cable may be plugged in, a switch port corrected and a DHCP server started meanwhile. What is missing
// is reported as a Failure when it lasts, and again at intervals.
package network
