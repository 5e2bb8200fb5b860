// Package blockdev holds the disks the agent writes: real block devices, and sparse files that stand for them in tests
// and in the simulated rack.
package blockdev
