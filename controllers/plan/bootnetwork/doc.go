// Package bootnetwork decides how a host's server brings up its network while Ingot's agent works on it: from what the NodeProvider says of the
// provisioning network, and what the annotations of the BareMetalHost say of the one host.
package bootnetwork
