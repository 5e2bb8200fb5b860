// Package drain implements `ingot drain`, which empties a Machine's node and powers its server off for work on the hardware, and powers it on
// again. The command only sets and clears spec.powerOff of the Machine: the machine controller does the work, also when the command has ended.
package drain
