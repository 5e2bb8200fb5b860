// Package machine gives hosts to Machines, installs them, lets them join, and takes them back.
//
// It is a shell around plan/lifecycle: a reconcile observes (observe.go, hosts.go, tenant.go) what lifecycle.Facts asks for,
// lets lifecycle.Plan decide, performs at most one action (act.go, act_tenant.go), and writes the status once
// (status.go). Nothing is kept in memory between reconciles.
//
// What is read from the cache and what from the API server itself follows from what a stale answer would do. A write on
// a BareMetalHost, HostRecord or Machine carries the resource version that was read, so a decision from a stale cache fails
// and is made again. Where a decision is not followed by such a write (a host is given up for lost, a Machine leaves, a
// Node is known to be gone, a drain is called off), the API server itself is asked.
//
// A roll asks a host for its next image in place: HostRecord.spec names the next attempt, the claim Secret is written anew,
// then BareMetalHost.spec gets the image and online. The installed and the wanted revision are read at every look (editions in
// observe.go), and the wanted one is rendered before anything is drained for it.
//
// What is secret is in the claim Secret alone, from the moment that it is written (render.go, package documents) until the node
// has joined: the bootstrap token, and files that are keys of Secrets in the host namespace, such as a licence token. Those
// Secrets are read at that moment from the API server itself, and named in no status but by their names. A Secret that is
// missing is looked for again, and no roll begins without it.
package machine
