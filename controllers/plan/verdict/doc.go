// Package verdict compares what a node shows with what its NodeType expects, check by check, and decides what is done to the gate:
// the taint that keeps the tenant's pods off the node.
//
// A check passes, waits or fails. The verdict fails if a check fails, else waits if one waits, else passes. A check waits for
// what takes time after a boot, such as a device plugin that registers, and fails after the deadline. A check fails at once
// on what does not become right by waiting: more devices than expected, the identity of another machine, another kernel.
// While a node is not Ready its object may be out of date, so no check fails then except those of its identity.
//
// A verdict is about one Node object, one boot, one revision and one rendering. With validation.onFailure: Hold, which is the
// default, the gate is off only while every check passes. It is lifted when every check has passed for the settle time and the
// previous verdict passed too. It is placed when a check no longer passes, after another boot, and on a Node that is observed
// without it before it was judged. With validation.onFailure: Observe the gate is lifted when the node joins and is not placed
// again, and the verdict is only reported. With both, the verdict admits the node only when every check has passed for the
// settle time and the gate is observed to be off.
//
// What DRA drivers publish is compared like resources. The devices of a pool count once all slices of its newest generation
// exist, as in the scheduler, and the selectors of DeviceClasses are evaluated with the library of the scheduler. Slices and
// classes belong to the tenant, so the length of what is quoted from them and the cost of evaluating them are limited.
//
// Of CPUs, memory and disk kubelet keeps a part from pods. Capacity is compared with the promise, and allocatable with the capacity
// less what the settings of kubelet reserve that the node was installed with. What they leave open is the defaults' or the cluster's.
//
// Judge is a pure function: it takes the time as a value and has no client.
package verdict
