// Package kubelet is the node agent of a simulated server: it does towards the API server what kubelet does, and nothing
// in the background that kubelet would not do.
//
// It lives by what its machine gives it: the words of its command line, its configuration file, and a bootstrap
// kubeconfig, whose token is the only credential it is ever given. With that it asks for a client certificate
// (kubernetes.io/kube-apiserver-client-kubelet) and keeps it on the machine's disk; all that follows is done with the
// certificate, so that the API server's Node authorizer and NodeRestriction judge it as they judge a real one.
//
// Like kubelet, it sets taints, labels and providerID only when it creates the Node. A Node that exists keeps its own, and
// gets its extended resources zeroed (pkg/kubelet/kubelet_node_status.go). A Node that is deleted while it runs is
// not made again. Containers are not run; a vendor's device plugin registers what the Plugins port says.
//
// For DRA it does kubelet's part: at its start it deletes its node's ResourceSlices, in the background; half a minute after a
// driver has gone it deletes that driver's; it starts a pod with claims when they are reserved for it and their drivers have
// registered. A driver's pod acts with its service account's token, which kubelet requests with the node's certificate.
package kubelet
