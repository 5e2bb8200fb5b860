// Package kubelet runs worker nodes for tests: the real kubelet and containerd, each node in network, process and mount namespaces of its own.
// A node ends with the process that started it, and so does everything that runs on it.
package kubelet
