// Package rack simulates servers, from the BMC to the node, behind the wires that real ones have: Redfish over HTTPS, boot
// documents over HTTP, the agent's protocol, a disk, and the Kubernetes API.
//
// A server does what it is told over those wires and knows nothing else. Powered on with a boot override to the network it
// runs its power-on self-test, fetches its boot document, interprets it as iPXE would, fetches kernel and initrd, and runs
// the real agent against its own disk. Without one it boots what is on the disk: package machineos reads the image
// and the config drive there as an operating system and cloud-init would, package kubelet lives by them in the
// tenant's cluster, and package software advertises what the vendors' plugins would on that hardware.
//
// Accelerators are hardware with a state of their own: package pci is the bus with its drivers and sysfs, package gpu NVIDIA's
// GPUs. What the disk's units and scripts do to them, in a shell of package shell and by the programs of package nvtool, package machine
// puts together; what vendors' pods then find and do is package software's: drivers, managers, feature discovery, device
// plugins and DRA drivers, for containers and virtual machines. Package operator makes DaemonSets of Helm values, and package
// settled shows a node without any API server.
//
// It imports neither presentation nor cloudinit nor controllers/plan: names and counts come from its own reading of
// what the vendors' tools read, so that it is no mirror of the code under test.
//
// Time comes from a clock. Everything that a server takes its time for is divided by Options.Speed, but for what others
// measure: leases are renewed every ten seconds at any speed.
package rack
