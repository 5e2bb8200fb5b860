// Package relay stands between ingot-manager and everything that it changes: the management cluster's API server, its tenants'
// and its servers' BMCs. It numbers the requests that change something, and can have the manager killed at the n-th: before the
// request is forwarded, or after it took effect and before its answer arrives.
//
// What counts as a change is every request but GET and HEAD (a watch is a GET), with four exceptions, which are passed on
// uncounted. Events and the leader election's Lease are no step of anybody's life. Reviews (may I do this?) change nothing. And a
// BMC's sessions: whether one is opened depends on what the manager did before, so that counting them would shift the numbers
// from run to run, and all that is lost with one is a place among the BMC's sessions, which a BMC takes back by itself.
package relay
