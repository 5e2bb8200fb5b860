//go:build !linux

package network

// ListNICs returns nothing: the agent runs on Linux only.
func ListNICs() []NIC { return nil }
