// Package gpumode writes the systemd unit that sets the mode of a node's GPUs at every boot before kubelet starts. The unit runs a
// script once; kubelet requires the unit, so that a node whose GPUs have the wrong mode does not join. Partitions and driver
// bindings do not survive a reboot, so a command that runs only at the first boot would not be enough.
package gpumode
