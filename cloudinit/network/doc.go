// Package network renders the network of a node: as OpenStack's network_data.json, which a config drive carries, as
// cloud-init's network-config version 2, which a NoCloud seed carries, and as the files of systemd-networkd and of
// NetworkManager, for images that read neither.
//
// Data is the one model behind all of them, and it is OpenStack's: links (NICs, bonds, VLANs), networks on them, and
// services. It comes from the few facts of a host and its provider (Boot), or from a document that somebody wrote (Parse).
package network
