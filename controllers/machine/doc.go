// Package machine is the controller of Machines: it claims a host for each Machine, installs the host, lets it join the tenant's
// cluster, rolls it, and returns it.
//
// A reconcile observes what lifecycle.Facts needs (observe*.go), lets lifecycle.Plan decide, carries out at most one action (act*.go),
// and writes the status once (status.go). Everything that a decision rests on is read anew in every reconcile. The one thing that is
// kept in memory is which bootstrap tokens a tenant has (tokenCache); it saves calls to the tenant and is rebuilt after a restart.
//
// # Cache or API server
//
// A write to a BareMetalHost, a HostRecord or a Machine carries the resource version that was read. A decision from a stale cache
// therefore fails at its write and is made again, and such decisions read from the cache. The API server is read
//   - where no such write follows: the Machine's host is gone or another's, the Machine itself is deleted, its Node is gone, a drain
//     is called off;
//   - right before an effect that such a lock does not protect (verifyMachine, verifyHost).
//
// # Rolls
//
// A roll installs the next image on the same host: HostRecord.spec names the next attempt, the claim Secret is written again, and
// BareMetalHost.spec gets the image and online. Every reconcile reads the installed and the wanted revision (readRevision).
// The documents of the wanted revision are rendered before the node is drained for it.
//
// # Secrets
//
// Secret content is only in the claim Secret (package documents), from the moment it is written until the node has joined. It is written when
// the HostRecord says that an agent waits for its documents; for a metal3 provider's host, before the installation is requested. It is the
// bootstrap token, and the files that a plan takes from Secrets of the host namespace, such as a licence token. These Secrets are
// read from the API server when the claim Secret is written. A status names a Secret and its keys, never its content. While a Secret
// is missing no roll begins, and the controller reads it again after a pause, because Secrets are not watched.
package machine
