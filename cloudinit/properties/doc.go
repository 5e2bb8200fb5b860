// Package properties reads the free-form properties of NodeProvider, NodeType and Machine, of which the nearest wins:
// Machine, then NodeType, then NodeProvider, key by key.
//
// The keys that mean something are vMetal's, so that its users keep theirs, and two of Ingot's own. What vMetal says by
// a property and Ingot by a field is refused with the name of the field, and so is every other key of these domains:
// a misspelt key would be silently ignored otherwise. All other keys are people's own, for their templates.
//
// A Machine is written by a tenant, NodeType and NodeProvider by the infrastructure team. So a Machine gives neither
// templates, which run in the controller, nor the network: vMetal lets it, and with metal3.vcluster.com/network-data its
// author would give the node any address, VLAN and gateway, and with the CIDR and the ranges lift the bounds that hosts'
// addresses were given. A host's own address is an annotation of its BareMetalHost, and what a NodeType needs is a
// property of that. Resolvers a Machine may set: they concern its own node alone. This keeps a mistake and an overreach
// out of the first boot; it is no wall. Whoever runs as root on a node, by user data or as the tenant's administrator, can
// give it another address later, and only the switch can hold against that.
package properties
