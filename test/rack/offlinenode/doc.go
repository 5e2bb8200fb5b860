// Package offlinenode computes the Node and the ResourceSlices of a simulated server without an API server, as kubelet and the pods of
// the cluster's DaemonSets make them. What takes minutes with an API server takes milliseconds, so that every mode can be tested.
package offlinenode
