// Package kubelet renders kubelet's files of a node: its configuration, its command line, and what it joins with.
package kubelet
