// Package newest makes a client whose reads never show less than what the client itself has written.
//
// A cache follows its watch, so that a reconcile right after a write may read the object as it was before. Deciding from that
// repeats what is done, or loses an optimistic lock and a second with it; reading everything from the API server instead costs
// it more than all writes do. Here an object comes from the cache, and from the API server only while the cache has not yet
// seen this process's last write of it. What others write shows up as late as with any cache: a decision that must not
// miss it is followed by a write under an optimistic lock, or reads from the API server.
//
// A delete is not waited for: what it took away is still there for a cache, as for anybody who looked a moment before.
//
// Resource versions of one API server are compared as numbers, as Kubernetes allows from 1.35 on; one that is no number
// counts as too old.
package newest
