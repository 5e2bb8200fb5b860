// Package metal3rack serves the BareMetalHosts of a rack as a site with Metal3 does: the baremetal-operator of the tests, and behind it, in place of
// Ironic, an installer that powers the rack's servers by Redfish and boots the agent on them over the network.
package metal3rack
