// Package relay provides proxies between ingot-manager and everything that it changes: the API servers of the management cluster and
// of the tenants, and the BMCs. The proxies number the requests that change something, and can kill the manager at the n-th one:
// before the request is forwarded, or after it has taken effect and before its answer arrives.
//
// Every request except GET and HEAD counts as a change (a watch is a GET). Four kinds are forwarded without being counted: Events and
// the leader election's Lease, which no decision depends on; access and token reviews, which change nothing; and a BMC's sessions.
// Whether a session is opened depends on what the manager did before, so counting sessions would shift the numbers from run to run.
// A session that is lost with the manager occupies one of the BMC's slots until the next manager ends it.
package relay
