// Package rack simulates servers from the BMC to the Node behind the interfaces of real ones: Redfish over HTTPS, boot documents over
// HTTP, the protocol of the agent, a disk, and the Kubernetes API.
//
// A server receives its orders over those interfaces only. Powered on with a boot override to the network it runs its power-on self-test,
// fetches its boot document, interprets it as iPXE does, fetches kernel and initrd, and runs the real agent on its own disk. Without an
// override it boots what is on the disk: package machineos reads the image and the config drive there as an operating system and
// cloud-init do, package kubelet registers the Node in the tenant's cluster, and package software advertises the resources that the
// vendors' plugins find on that hardware.
//
// Accelerators keep a state. Package pci is the bus with its drivers and sysfs, package gpu has NVIDIA's GPUs. Package machine runs the
// units and scripts on the disk, with the shell of package shell and the programs of package nvtool. Package software runs the vendors'
// pods: drivers, managers, feature discovery, device plugins and DRA drivers, for containers and virtual machines. Package operator makes
// DaemonSets of Helm values, and package offlinenode computes a Node without an API server.
//
// The package imports neither presentation nor cloudinit nor controllers/plan. It derives names and counts with its own code from what the
// vendors' tools read, so that an error in the code under test is not repeated here.
//
// Time comes from a clock. Durations of servers are divided by Options.Speed, except those that others measure: leases are
// renewed every ten seconds at any speed.
package rack
