// Package script is the join by a script of the tenant's own: what such a script must be, the environment that it finds, and the systemd unit that runs it.
//
// The unit runs after the network, containerd and the units that set the GPUs' mode. A script that fails is run again, as systemd would start an agent again,
// so it must be able to run twice. When it has succeeded it is removed from the node with its environment, and runs never again: the next installation
// brings them anew.
//
// The Node that the script registers must have the taints of INGOT_NODE_TAINTS from the beginning. One that is first seen without the gate is tainted at
// once, and that is reported as GateMissed.
package script
