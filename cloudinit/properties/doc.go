// Package properties reads the free-form properties of NodeProvider, NodeType and Machine. For each key the value of the Machine takes
// precedence over that of the NodeType, and this over that of the NodeProvider.
//
// The keys that Ingot understands are those of vMetal, so that users of vMetal can keep their properties, and two of its own. When
// vMetal has a property for something that Ingot has a field for, the property is refused with the name of the field. Every other
// key of these domains is refused too, because a misspelt key would otherwise be ignored without an error. Keys of all other
// domains belong to the users, for their templates.
//
// A tenant writes the Machine, and the infrastructure team writes NodeType and NodeProvider. A Machine may therefore have neither
// templates, which run in the controller, nor properties of the network. vMetal allows both. With
// metal3.vcluster.com/network-data a tenant could give the node any address, VLAN and gateway, and so take the address of another
// tenant's node. With the CIDR and the ranges it could remove the limits on the addresses of hosts. The address of a host is an
// annotation of its BareMetalHost, and the network of a NodeType is a property of the NodeType. A Machine may set DNS resolvers,
// because they affect its own node only.
//
// This check prevents mistakes and misuse at the first boot. It is not a security boundary: root on the node can change the
// address later, and only the switch can prevent that.
package properties
