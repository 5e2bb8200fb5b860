// Package wire is the way to one BMC: a transport that is gentle with it and trusts it with nothing, and what its
// failures mean as kinds of hardware.Error. What a BMC may answer, and what is made of it, is told in package redfish.
package wire
