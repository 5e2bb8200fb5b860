// Package cloudinit renders the documents that a node's first boot reads from a config drive: user data, network data and
// meta-data.
//
// User data is built in layers: the provider's, the NodeType's, the one of the properties, then Ingot's own. Among the users'
// layers mappings merge, lists append, and of scalars the later one is taken. A layer that is a script is not changed: it becomes a
// part of its own in a MIME message, and cloud-init runs it before all of runcmd. The users' layers and what Ingot needs never
// overwrite each other: where they conflict, Render returns a *Conflict that names every path. The users' runcmd runs before
// Ingot's, so that a node joins only after its own preparation.
//
// Rendering works on YAML nodes and not on decoded values: cloud-init reads YAML 1.1, where 0644 and yes mean something
// else than in YAML 1.2, and a scalar keeps its spelling this way.
//
// Properties (package properties) override by precedence, may be templates (package templates), and say what the fields
// do not: bonds and VLANs. The network (package network) is rendered as OpenStack's network_data.json, which is what a
// config drive's reader takes, and as network-config version 2, for a NoCloud seed.
//
// Everything is deterministic, and secrets enter at the last step: Render builds the whole document without them, and then
// appends the files that hold them: those of the presentation that are keys of Secrets (a virtual GPU's licence token), in
// base64, and the one with the bootstrap token. After the join the document is rendered without any of these. What reads
// user data reads it once for an installation (cloud-init by its instance-id, Ignition at the first boot), so the files
// stay on the disk, and no copy of a secret that has been delivered remains in the cluster. The next installation reads
// the Secrets again: a licence token is changed in its Secret, and reaches the node with its next revision.
//
// Files that a node gets, beside those of its presentation:
//
//	/etc/kubernetes/kubelet.yaml                         KubeletConfiguration: gate taint, providerID, certificate rotation
//	/etc/kubernetes/pki/ca.crt                           the tenant's CA, for the API server's calls to kubelet
//	/etc/kubernetes/bootstrap-kubeconfig                 the tenant's endpoint and CA, and the bootstrap token
//	/etc/systemd/system/kubelet.service.d/90-ingot.conf  kubelet's command line
//
// The drop-in's name sorts after 10-kubeadm.conf of the Kubernetes packages, whose command line would win otherwise.
package cloudinit
