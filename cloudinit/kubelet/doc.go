// Package kubelet renders the files of kubelet: its configuration, its command line, and the bootstrap kubeconfig with which it joins.
package kubelet
