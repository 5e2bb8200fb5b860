// Package quota decides which Machines of a namespace have a place under its NodeQuota.
//
// A Machine asks for a place by its own status: it is Pending, a host is there that it could claim, and its condition Claimed says Claiming or
// QuotaExceeded. Decide gives places to all for which there is room, the oldest first, by one write of the NodeQuota's status under the resourceVersion
// that was read. A Machine writes its claim only after the API server has shown it its reservation. The reservation is removed once the Machine has its
// host, once it is gone, and some time after it has given up its claim.
//
// A decider may use Machines from a cache that lags behind. What it must not miss are hosts of Machines whose reservations were removed: the status
// keeps up to which resourceVersion the cache must have come. Without it: manager A sees that Machine 1 has its host and removes its reservation; manager B,
// whose cache does not show the host yet, finds neither reservation nor host and gives the place to Machine 2.
//
// An older Machine that no limit would ever let through, or that only the limit of its own NodeType holds back, does not hold back the others; one that
// waits for GPUs does, because it would otherwise wait for ever while smaller ones take each GPU that becomes free.
package quota
