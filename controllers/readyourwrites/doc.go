// Package readyourwrites makes a client that reads from a cache and never returns an object that is older than the client's own
// last write of it.
//
// A cache follows a watch and lags behind: a reconcile right after a write may read the object as it was before. It would then
// repeat its work, or lose an optimistic lock and with it a second. To read everything from the API server instead would load
// it more than all writes do. This client reads from the cache and, while that does not have this process's last write of the
// object, returns what the API server answered to that write. It reads from the API server where the cache has no such object, and
// where many others were written since. Writes of other processes appear as late as in any cache: a decision that must not miss
// them is followed by a write under an optimistic lock, or rests on a read from the API server.
//
// The client does not wait for a delete: the cache may still return the object that was deleted.
//
// Resource versions of one API server are compared as numbers, which Kubernetes allows from version 1.35 on. A resource version
// that is not a number counts as older than every other.
package readyourwrites
