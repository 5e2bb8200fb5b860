// Package containerd renders the files that complete containerd's configuration on a node: the runtime and the device injection (CDI) that its GPUs need,
// the mirrors of registries, and the sandbox image.
//
// The configuration is a drop-in in /etc/containerd/conf.d, which containerd reads when the image's own configuration imports that directory. containerd 2
// merges a drop-in member by member. containerd 1 replaces the whole section of the CRI plugin by that of the drop-in, so that the image's cgroup driver and
// default runtime would be lost: there no drop-in is rendered, and the image must have what is needed.
//
// On nodes that several tenants share, the same program sets NVIDIA's container toolkit, by nvidia-ctk: it is to give a container that is not privileged no
// device for its environment or its volumes. Without it: a pod that sets NVIDIA_VISIBLE_DEVICES=all has every GPU of the node.
//
// All files of one configuration must be of one version: that of the drop-in wins, and a section of another version is then not understood. So a program on
// the node takes the drop-in away where the image's configuration has another version. The same program asks containerd what it makes of all its files, and
// reports what is missing in an annotation of the Node. What the image itself has counts as well as what the drop-in says.
package containerd
