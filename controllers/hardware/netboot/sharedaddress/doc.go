// Package sharedaddress puts an address that several machines share onto an interface, for a time, and tells the network who has it.
//
// The kernel removes the address when its time is over. A process that is killed, frozen or cut off therefore loses the address without doing
// anything.
package sharedaddress
