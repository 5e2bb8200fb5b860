// Package hardwaredata labels the hosts of metal3 NodeProviders by what their baremetal-operator has found in them.
//
// The host controller does that for every other host, and leaves these alone. Here Metal3's HardwareData of the host's name is read once after each
// inspection; an operator that writes none, and an API server that does not know the kind, leave what is in the host's status. HardwareData is not
// watched and not kept in memory: it has the hardware in full, and the kind may be missing.
//
// Nothing is written to a host that somebody else uses, or that is paused.
package hardwaredata
