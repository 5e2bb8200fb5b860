// Package firstrack follows config/first-rack.md: its commands and settings as they stand there, with Ingot as pods on two nodes that run the real
// kubelet and containerd.
package firstrack
