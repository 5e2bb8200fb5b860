// Package explain is `ingot explain`: what a NodeType tells the operating system of its nodes, and what a node must then
// show before it is admitted. It reads manifests and asks no cluster.
package explain
