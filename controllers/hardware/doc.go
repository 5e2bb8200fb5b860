// Package hardware defines the two ports through which Ingot controls servers: BMC, the management controller of one
// server, and Installer, a service that writes an image to the disk of a server.
//
// Only values cross these ports: no Kubernetes object and no vendor type. Every call is idempotent, is identified by host and
// attempt, and returns at once; the caller observes long work and does not wait for it. A failed call returns an *Error of one of
// the Kinds, so that the caller decides by the kind and never by the text.
//
// The adapters are in the packages below: redfish implements BMC; direct implements Installer with a BMC, the boot service of
// package netboot and the agent. Every Installer passes the suite in test/conformance.
//
// # Ownership of state
//
// The progress of an attempt belongs to its Installer: the order of the steps, which requests are sent to the hardware and when they
// are repeated, the time-out of each step, when a change of power counts as ignored, and what is stored of all this.
// controllers/plan/host decides which attempt a host needs, and what the end of an attempt means: which
// image is installed, which erase is proven, what is tried again. It does not read the steps of an attempt.
//
//	fact                                         owner                                stored in
//	which attempt a host needs, its deadline,    controllers/plan/host                HostRecord.status.wanted
//	its Machine and its outcome
//	the progress of the attempt                  the Installer                        chosen by the Installer: for direct
//	                                                                                  HostRecord.status.attempt, for Ironic its nodes
//	that a change of power is needed, and        controllers/plan/host                HostRecord.status.power (PoweringOn, PoweringOff)
//	since when
//	how a change of power is requested, and      the Installer                        not stored, or in Ironic's node
//	whether the hardware ignored it
//	why a host is in error                       controllers/plan/host                HostRecord.status.error
//	time-outs                                    Timeouts in this package; the        the configuration of the manager
//	                                             deadlines of attempts in
//	                                             controllers/plan/host
//
// An Installer that stores its state elsewhere reads it from there at every Observe. The caller compares the result with the attempt
// that the host needs by the number alone, and writes only the outcome to the HostRecord, once. Such an Installer has no
// HostRecord.status.attempt, so no progress is displayed for it.
//
// # Mapping to Ironic
//
// An Installer that uses Ironic maps each call of the port to Ironic's API as follows. The name of the node is NAMESPACE~NAME.
// node.extra.ingot_attempt is the number of the attempt and node.extra.ingot_work its operation. node.extra.ingot_from is patched together with
// instance_info, before the provision target that starts the work, with the time of the node's last change. When the process is killed between the
// two requests, the next one reads a node that has not changed since, so that no work has started, and requests the target again.
//
//	call       requests to Ironic                                   completion and failure
//	Observe    GET /v1/nodes, one list for all nodes                power_state: "power on" On, "power off" Off, null Unknown; with a
//	                                                                target_power_state PoweringOn or PoweringOff. IsPowerRemembered.
//	                                                                Number: extra.ingot_attempt. Running: while the work has not started or
//	                                                                goes on, and at rest until there is evidence of it. Succeeded, with
//	                                                                evidence: active (Install), manageable (Inspect, Erase, which is also
//	                                                                "power off"). Failed: deploy failed, clean failed, inspect failed, error.
//	                                                                Step: "wait call-back", "clean wait", "inspect wait" Booting;
//	                                                                deploy_step write_image Writing, the later ones Verifying; clean_step Erasing.
//	                                                                Message: last_error. Reason: by the step at which it failed, such as
//	                                                                AgentMissing at "wait call-back". No bytes: ByteProgress is false.
//	           GET /v1/nodes/NODE/inventory                         Inventory, without SystemUUID. From an Ironic that has none: properties and ports.
//	Inspect    PUT .../states/provision target manage, then         manageable again; inspect failed. A driver without an inspection: Succeeded.
//	           inspect
//	Install    PATCH instance_info: image_source,                   active; deploy failed.
//	           image_os_hash_algo, image_os_hash_value,
//	           image_disk_format, root_device.
//	           PUT .../states/provision target active, with
//	           configdrive; for a node that is active already
//	           target rebuild
//	Erase      PUT .../states/provision target deleted where        manageable and "power off"; clean failed. EraseNone is the first
//	           it is active, manage, then clean with clean_steps    and the last of these.
//	           deploy.erase_devices_metadata or
//	           deploy.erase_devices; then PUT .../states/power
//	           target "power off"
//	Cancel     deploying and "wait call-back": target deleted;      Observe reports Failed by Cancelled, and "power off". A node that was
//	           "clean wait", "inspect wait": target abort; then     locked meanwhile goes to error: request deleted again.
//	           PUT .../states/power target "power off"
//	SetPower   PUT .../states/power target "power on",              power_state. Ironic repeats the request itself: while target_power_state
//	           "power off", or "soft power off" with timeout        is set, send nothing. last_error of a power change, or Since and the
//	           Timeouts.GracefulOff                                 time-out passed: Ignored, with PowerOnIgnored or PowerOffIgnored.
//
// A 409 while a conductor has locked the node is Busy, a provision_state that does not allow the target is Conflict, a missing node is
// NotFound. Automated cleaning is disabled, so that only Erase cleans. Ironic has no deadline for an attempt: when the deadline has
// passed, plan/host ends the attempt, and the next call with a higher number first does what Cancel does. The power must not be
// switched without Ironic, because Ironic's power synchronization reverts such a change.
package hardware
