// Package probe decides which pod uses the devices of a node before it is admitted, and what its end means.
//
// One pod after the other asks for each promised extended resource or DeviceClass. What a pod found is a check of the verdict, and the verdict in the
// Machine's status is the only memory: a result is kept for the Node object, boot, revision and rendering that it is about, and a failure is tried again
// after RetryInterval. The pod has the same name in every attempt, so a manager that starts again finds the pod of the one before it.
//
// A pod is made only while every other check passes and the gate is on. An admitted node gets none. A node whose devices the tenant's pods hold, because it
// booted again with them, gets none either: the probe would wait for devices that nobody gives back. Its check passes and says so.
//
// What a pod writes belongs to the tenant: it is shortened, and what cannot be printed is removed.
package probe
