// Package baremetaloperator serves BareMetalHosts in tests as the baremetal-operator does: the states of a host, what it writes into the status and
// when, its annotations, the Secrets and HardwareData that it claims, and what it retries. It is written from Metal3's documentation of that API and from
// the behaviour of two releases, and knows nothing of what Ingot's controllers expect.
//
// What a client of the API has to know, and what this package therefore does:
//   - An image is installed only on a host that is available with an empty status image. Only another URL, or no image, ends what is installed.
//   - The server runs its image before status.poweredOn says so: the state provisioned is written first, and the power is looked at afterwards.
//   - The power is looked at only in the states available, provisioned and externally provisioned, once a minute when nothing changes. An
//     error of the registration, a delay and the annotations paused and detached prevent it. A BMC that does not know leaves status.poweredOn as it is.
//   - Nothing is written when nothing has changed.
//   - Errors are counted in status.errorCount and retried after a time that doubles. A write of the status does not shorten it: see Changes.
//   - The Secrets of the config drive are read when an installation begins, and not while it runs.
//   - A Secret that is read gets a label, by which the operator's cache selects Secrets. That of the BMC is owned by the host too, and has a finalizer
//     until the host is gone: one that is deleted stays readable.
//   - An operator that is started again knows what the objects say, and nothing else.
//
// Options.Conditions chooses between the two releases:
//
//	                          without (v0.12)                         with (the main branch of November 2026)
//	conditions                none                                    written at every look that ends without error, also when nothing else is
//	a failed installation     is deprovisioned and tried for ever     is tried Options.Retries times; status.provisioningFailCount counts, and the host
//	                                                                  is available with the error then
//	a missing Secret of the   the look ends with an error, which      the host has a provisioning error without count, stays provisioning, and is
//	config drive              the status does not say                 looked at every ten seconds
//	a deletion while the      is deprovisioned unless the status      ends without deprovisioning
//	host has the annotation   says detached already
//	detached
//	spec.architecture         is left as it is                        is written after the inspection when it is empty
//
// An error of the BMC's Secret is written without the conditions: those of the look before stay. The condition Healthy is written only while the BMC
// reports its health. Otherwise it keeps what it had, and with it the generation that it once observed.
package baremetaloperator
