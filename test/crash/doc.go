// Package crash kills ingot-manager at every request that changes something, and tests that nothing is lost. It has tests only. Package
// relay stands between the manager and the API servers and BMCs.
//
// There are three scenarios: the life of a Machine (created, Ready, released, its host available again), a rollout (the image and the
// user data of a NodeType change, and its Machine is installed again on the same host), and an inspection of a free host by its BMC and then by
// the agent. Each runs first without a kill, and its requests
// are numbered. Then it runs with the manager killed by SIGKILL before request n is forwarded, and with the manager killed after
// request n took effect and before its answer arrived. A new manager is started at once. For every n the scenario must end as it
// does without a kill: one installation per attempt and no further attempt, counted at the servers' agents; one host per Machine,
// counted in the requests; no bootstrap token and no claim Secret left; and no violation of package invariants.
//
// By default a sample of 8 is run, seeded by INGOT_CRASH_SEED or, without it, by INGOT_DEEP, which CI sets to the commit. INGOT_CRASH=all runs every n, as
// `make test-deep` does; INGOT_CRASH=life:before:17,rollout:after:3 runs these. What order the requests come in depends in part on
// time, so each run prints which request its number was, and the summary prints the kinds of requests at which no run was killed.
//
// A second test runs the first two scenarios at a site where a baremetal-operator serves the hosts, with the rights of config/metal3: that of package
// baremetaloperator, which is not killed. An even seed has its release that writes conditions and limits the tries, an odd one that without. The sample
// has 4 runs; INGOT_CRASH_METAL3 chooses as INGOT_CRASH does. There the agents are counted too, no host is cleaned while its node runs, and none is
// installed for another Machine before it was cleaned.
//
// A third test runs them where a real Ironic installs the hosts, with hardware of its own memory and the rack's servers behind its nodes. The manager is
// also killed at its requests to Ironic. Its sample has 8 runs; INGOT_CRASH_IRONIC chooses as INGOT_CRASH does.
//
// What happens once is not part of any scenario: the registration, the boot key, the claim of a host namespace. Leader election is off: there is
// one manager, and the next one is started when it has exited.
package crash
