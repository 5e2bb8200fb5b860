// Package cloudinit renders the documents that a node's first boot reads from a config drive: user data, network data and
// meta-data.
//
// User data is built from layers in this order: the NodeProvider's, the NodeType's, that of the properties, and Ingot's. Among the
// users' layers mappings are merged, lists are appended, and a later scalar replaces an earlier one. A layer that is a script is not
// changed: it becomes a separate part of a MIME message, and cloud-init runs it before all of runcmd. The users' layers and what
// Ingot needs never overwrite each other. When they conflict, Render returns a *Conflict that names every path. The users' runcmd
// runs before Ingot's, so that a node joins only after the users' commands.
//
// Rendering works on YAML nodes and not on decoded values, so that every scalar keeps its spelling. cloud-init reads YAML 1.1, in
// which 0644 and yes do not mean the same as in YAML 1.2.
//
// Properties (package properties) override each other by precedence, and some are templates (package templates). They configure what
// no field does: bonds and VLANs. The network (package network) is rendered as OpenStack's network_data.json for a config drive, and
// as network-config version 2 for a NoCloud seed.
//
// The same input always gives the same bytes. Secrets are added at the last step: Render builds the document without them, and then
// appends the files that have them. These are files of the presentation whose content is a key of a Secret (the licence token of a
// virtual GPU), in base64, and the file with the bootstrap token. After the join the document is rendered again without these files,
// so that no copy of a delivered secret remains in the cluster. The files stay on the node's disk, because user data is applied once
// for each installation: by cloud-init for each instance-id, by Ignition at the first boot. The next installation reads the Secrets
// again. A licence token that was changed in its Secret therefore reaches the node with the node's next revision.
//
// A node gets these files in addition to those of its presentation:
//
//	/etc/kubernetes/kubelet.yaml                         KubeletConfiguration: gate taint, providerID, certificate rotation
//	/etc/kubernetes/ingot-kubelet-defaults               a program that writes kubelet.conf.d/10-defaults.conf by the size of the server
//	/etc/kubernetes/kubelet.conf.d/60-nodetype.conf      the user's members: NodeType.spec.kubelet
//	/etc/kubernetes/pki/ca.crt                           the tenant's CA, for the API server's calls to kubelet
//	/etc/kubernetes/bootstrap-kubeconfig                 the tenant's endpoint and CA, and the bootstrap token
//	/etc/systemd/system/kubelet.service.d/90-ingot.conf  kubelet's command line
//	/etc/containerd/conf.d/50-ingot.toml                 what containerd needs for the GPUs and the site, where it needs something (package containerd)
//	/etc/kubernetes/ingot-node-ip                        a program that finds the node's own address, where nodeNetworks is set
//
// A node that kubeadm joins gets, instead of the first three, kubeadm's configuration with the token, a patch of the cluster's KubeletConfiguration and
// the unit ingot-kubeadm-join.service; kubeadm writes kubelet's configuration and starts it. A node that a script joins gets the script, its environment
// and the unit ingot-join-script.service (package kubelet/script), and no drop-in of kubelet's unit.
//
// The name of the drop-in sorts after 10-kubeadm.conf of the Kubernetes packages. Otherwise their command line would take precedence.
package cloudinit
