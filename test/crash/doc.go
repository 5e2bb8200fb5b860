// Package crash kills ingot-manager at every request that changes something, and shows that nothing is lost by it. It holds tests
// only; what stands between the manager and the world is package relay.
//
// One Machine's life (made, Ready, released, its host available again) is first run undisturbed and its requests are
// numbered. Then it is run again with the manager killed by SIGKILL before request n is forwarded, and again with the manager killed
// after request n took effect and before its answer arrived; a new manager is started at once. Whatever n is, the run must end
// as the undisturbed one did: one installation per attempt, counted at the agents; one host per Machine, counted at the wire; no
// bootstrap token and no claim Secret left over; and every promise of package invariants kept.
//
// By default a sample of 20 is run, seeded by INGOT_CRASH_SEED (1 when it is not set). INGOT_CRASH=all runs every n, which
// `make test-crash` does; INGOT_CRASH=life:before:17,life:after:17 repeats these. What order the requests come in depends in part on time, so each
// run says which request its number was.
package crash
