// Package revision makes NodeTypeRevisions: it copies what shapes a node from a NodeType, its NodeProvider and its OSImage, and
// names the copy by a digest. The digest covers exactly these inputs: the image's digest, format and kind of user data; the
// GPUs and their presentation; the layers of user data and of properties; the network; the SSH keys; the user's own members of
// kubelet's configuration; the hash version.
//
// It does not cover names, hostname, addresses, join, resources, selector, zone, gate, validation, rollout, erase, displayName,
// nor node labels and taints, which are applied to running nodes. Changing those rolls no node.
//
// The digest covers the user data, properties, network and SSH keys of the NodeProvider. But a change of the NodeProvider alone
// makes no new revision, because every NodeType of a hall would roll at once. It takes effect with the next change of the
// NodeType itself. OwnDigest shows which of the two has changed.
//
// The encoding lists its fields by hand and omits fields that have their default. So a new field, or a new default in a later
// version, does not change the digest of existing revisions. If it did, an upgrade of Ingot would roll the whole fleet.
package revision
