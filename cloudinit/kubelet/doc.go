// Package kubelet renders what a node joins with: kubelet's configuration and command line, and the bootstrap kubeconfig, kubeadm's configuration, or the
// script of the tenant.
package kubelet
