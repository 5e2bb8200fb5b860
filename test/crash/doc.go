// Package crash kills ingot-manager at every request that changes something, and shows that nothing is lost by it. It holds tests
// only; what stands between the manager and the world is package relay.
//
// Two stories are told: one Machine's life (made, Ready, released, its host available again), and one rollout (a NodeType's image
// and user data change, and its Machine is installed again where it is). Each is first told undisturbed, and its requests
// are numbered. Then it is told again with the manager killed by SIGKILL before request n is forwarded, and again with the manager
// killed after request n took effect and before its answer arrived; a new manager is started at once. Whatever n is, the
// story must end as it does undisturbed: one installation per attempt and no attempt more, counted at the servers' agents; one
// host per Machine, counted at the wire; no bootstrap token and no claim Secret left over; and every promise of package
// invariants kept.
//
// By default a sample of 20 is run, seeded by INGOT_CRASH_SEED (1 when it is not set). INGOT_CRASH=all runs every n, which
// `make test-crash` does; INGOT_CRASH=life:before:17,rollout:after:3 runs these. What order the requests come in depends in part on
// time, so each run says which request its number was, and the summary says which kinds of requests no number fell on.
//
// What happens once per site is not part of either story: inspection, the boot key, the claim of a host namespace. Nor is the
// leader election, which is off: there is one manager, and the next is started when it is gone.
package crash
