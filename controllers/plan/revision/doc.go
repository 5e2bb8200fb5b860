// Package revision turns a NodeType, its NodeProvider and its OSImage into the snapshot that shapes a node, and names
// it by a digest over exactly these inputs: the image's digest, format and kind of user data; the GPUs and their
// presentation; the layers of user data; the network; the SSH keys; the hash version.
//
// Not in it: names, hostname, addresses, join, node labels and taints (applied in place), resources, selector, zone,
// gate, validation, rollout, erase, displayName. Changing those rolls no node.
//
// A NodeProvider's layers are in the digest, and still its change alone makes no revision: every NodeType of a hall would
// roll. It takes effect when the NodeType itself changes next. OwnDigest tells the one from the other.
//
// The encoding lists its fields by hand and leaves out what has its default, so that neither a new field nor a new
// default of a later version changes a digest: a fleet would roll because its operator was upgraded.
package revision
