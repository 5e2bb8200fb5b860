// Package dra publishes the devices of a node as a DRA driver does: ResourceSlices of one pool that is called like the node,
// written by the driver's pod and owned by the Node.
//
// It behaves as k8s.io/dynamic-resource-allocation/resourceslice does for a driver with one pool: devices that are published
// already stay as they are, all that change are published under a new generation, a slice that somebody deletes comes
// back, and the Node's uid is read once, so that the slices of a driver which outlives its Node object are collected.
package dra
