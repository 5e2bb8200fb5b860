// Package verdict compares what a node shows with what its NodeType promises, check by check, and decides what happens to
// the gate, the taint that keeps tenants' pods off the node.
//
// Every check passes, waits or fails. The verdict fails when a check fails, else waits when one waits, else passes. What
// takes time after a boot (plugins that register) waits until the deadline and then fails; what cannot become right by
// waiting (more than promised, another machine's identity, another kernel) fails at once. While a node is not Ready its
// object is what kubelet said before, and nothing in it fails: it waits.
//
// The gate is off only while everything passes, for one Node object, one boot and one revision. It is lifted when that
// lasted for the settle time and the last verdict that was written said so too; it comes back with the first check that
// does not pass, with another boot, and when the Node is first seen without it. A verdict is admitted only after the
// gate was seen to be off.
//
// What DRA drivers publish is compared like resources: a driver's devices count once all slices of a pool's newest
// generation are there, as in the scheduler, and the selectors of the DeviceClasses are evaluated with the scheduler's own
// library. Slices and classes are written in somebody else's cluster: what is quoted of them, and what is spent on them, is
// bounded.
//
// Judge is pure: it takes the time as a value and holds no client.
package verdict
