// Package baremetaloperator serves BareMetalHosts in tests as the baremetal-operator does by its documentation: the states of a host, what it
// writes into the status and when, its annotations, and what it retries. It is written from Metal3's documentation of that API and knows nothing
// of what Ingot's controllers expect.
//
// What a client of the API has to know, and what this package therefore does:
//   - An image is installed only on a host that is available with an empty status image. Only another URL, or no image, ends what is installed.
//   - The server runs its image before status.poweredOn says so: the state provisioned is written first, and the power is looked at afterwards.
//   - The power is looked at only in the states available, provisioned and externally provisioned, once a minute when nothing changes. An
//     error of the registration, a delay and the annotations paused and detached prevent it.
//   - Nothing is written when nothing has changed. With Options.Conditions, conditions are written with the generation that was observed.
//   - A failed installation is deprovisioned and tried again until a limit. The host is available then, and its error stays until its power changes.
//   - Errors are counted and retried after a time that doubles.
//   - A Secret that is read gets a label, by which the operator's cache selects Secrets.
package baremetaloperator
