// Package explain is `ingot explain`: what a NodeType tells the operating system of its nodes, and what a node must then
// show before it is admitted. It reads manifests and asks no cluster, or shows what a Machine of a cluster was installed with.
package explain
