// Package blockdev implements agent.Disk: Device for block devices of Linux, and File for sparse files that stand for disks in tests and
// in the simulated rack.
package blockdev
