// Package network renders the network of a node in the format that its image reads:
//
//	config drive                       OpenStack's network_data.json
//	NoCloud seed                       cloud-init's network-config version 2
//	Ignition, on Flatcar               files of systemd-networkd
//	Ignition, on the other systems     keyfiles of NetworkManager
//
// All of them are rendered from Data, which has OpenStack's model: links (NICs, bonds and VLANs), networks on the links, and DNS
// resolvers. Data follows from the boot NIC of the host and the network of its NodeProvider (Boot), or a user wrote it as a document
// (Parse).
package network
