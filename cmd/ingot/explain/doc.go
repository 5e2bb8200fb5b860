// Package explain implements `ingot explain`, which shows how a NodeType configures the operating system of its nodes, and what a
// node must show before it is admitted. It reads manifests, or what a Machine of a cluster was installed with.
package explain
