// Package nodepool is the controller of NodePools. It creates and deletes Machines until a pool has as many as its spec.replicas and its hosts allow.
//
// The Machines of a pool are those that it controls by ownerReference. Labels do not matter. Before it creates or deletes, the
// controller reads the Machines from the API server: the cache may lack the Machine that was created last, and a second one would be
// created. One goroutine of the leader reconciles a pool at a time, so that this read is complete.
//
// A former leader could still create a Machine after it lost its lease. That surplus Machine is the youngest and not Ready, so it is the
// first to be deleted. Names with a slot number would prevent it, but a Machine that is being released has its name for as long as an
// erase takes, and its replacement must not wait for that.
//
// A Machine is created without a revision. It gets the stable revision of the NodeType when it claims a host, also during a Rollout, and
// the Rollout moves it later. A Machine that is being rolled is not Ready but counts as a replica, so that the pool does not create
// another one. When the pool shrinks, such a Machine may be deleted first.
//
// While there are fewer free hosts than Machines asked for, one Machine waits and the others are not created: the condition Placed says how many are
// missing. The Machine that waits claims the next host, that changes it, and the pool looks again; so does a NodeType that counts more free hosts.
package nodepool
