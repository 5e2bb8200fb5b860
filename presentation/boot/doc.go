// Package boot sets the mode of a node's accelerators at every boot before kubelet starts: a oneshot unit that kubelet
// requires runs a script, so that a node whose accelerators have the wrong mode does not join. Partitions and bindings do
// not outlive a reboot, so that what runs once in a node's life is too late.
package boot
