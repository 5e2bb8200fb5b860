// Package hardware defines the two ports through which Ingot touches metal: BMC, a server's management
// controller, and Installer, whatever puts an image on a server's disk.
//
// Only values cross these ports: no Kubernetes object, no vendor type. Every call is idempotent, is keyed by host and
// attempt, and returns at once; long work is observed, never awaited. Failures are *Error with one of the closed
// set of kinds, so that a caller decides by kind and never by text.
//
// Adapters live in the packages below: redfish (BMC), direct (Installer made of a BMC, the boot service of netboot
// and the agent), and the suite every Installer passes, conformance.
//
// # Who owns what
//
// The course of an attempt belongs to its Installer: which step comes next, what is asked of the hardware and when it is asked again,
// how long a step may take, when the server has ignored a change of power, and what is kept of it all. controllers/plan/host
// decides which attempt is wanted of a host, and controllers/plan/outcome what its end means: what is installed, what is proven
// to be erased, what is tried again. Neither looks at how it goes.
//
//	fact                                         owner                                kept in
//	which attempt is wanted, until when, for     controllers/plan/host                HostRecord.status.wanted
//	whom, and what it came to
//	how the attempt stands                       the Installer                        its own place: for direct HostRecord.status.attempt,
//	                                                                                  for Ironic its nodes
//	that a change of power is wanted, and        controllers/plan/host                HostRecord.status.power (PoweringOn, PoweringOff)
//	since when
//	how a change of power is asked for, and      the Installer                        nowhere, or in Ironic's node
//	that it was ignored
//	why a host is in error                       controllers/plan/host                HostRecord.status.error
//	how long things may take                     Timeouts here; the deadlines of      the manager's configuration
//	                                             attempts in controllers/plan/host
//
// An Installer that keeps its state elsewhere is asked there at every Observe. Its answer is compared with the attempt that is wanted by
// the number alone, and nothing of it is written to the HostRecord but the outcome, once. There is no status.attempt then; whoever shows
// progress must do without.
//
// # An Installer that keeps its state in Ironic
//
// This is how the port maps to Ironic's API, call by call. The node is found by its name, NAMESPACE~NAME. node.extra.ingot_attempt is
// the number of the attempt, node.extra.ingot_work its operation; both are patched together with instance_info, before the target
// that begins the work: a process that is killed between the two finds the number with nothing begun, and asks for the target again.
//
//	call       asks of Ironic                                       is done when, and how it fails
//	Observe    GET /v1/nodes/NODE                                   power_state: "power on" On, "power off" Off, null Unknown; with a
//	                                                                target_power_state PoweringOn or PoweringOff.
//	                                                                Number: extra.ingot_attempt. Running: while target_provision_state is
//	                                                                set. Succeeded: active (Install), manageable (Inspect, Erase, which is
//	                                                                also "power off"). Failed: deploy failed, clean failed, inspect failed,
//	                                                                error, and available or manageable after an Install: Cancelled.
//	                                                                Step: "wait call-back", "clean wait", "inspect wait" Booting, until
//	                                                                driver_internal_info.agent_last_heartbeat: Registered; deploy_step
//	                                                                write_image Writing, the later ones Verifying; clean_step Erasing.
//	                                                                Message: last_error. Reason: by the step at which it failed, such as
//	                                                                AgentMissing at "wait call-back". No bytes: ByteProgress is false.
//	           GET /v1/nodes/NODE/inventory                         Inventory, SystemUUID included: Ironic's agent reads DMI.
//	Inspect    PUT .../states/provision target manage, then         manageable again; inspect failed.
//	           inspect
//	Install    PATCH instance_info: image_source,                   active; deploy failed.
//	           image_os_hash_algo, image_os_hash_value,
//	           image_disk_format; properties.root_device.
//	           PUT .../states/provision target active, with
//	           configdrive; for a node that is active already
//	           target rebuild
//	Erase      PUT .../states/provision target deleted where        manageable and "power off"; clean failed. EraseNone is the power-off
//	           it is active, manage, then clean with clean_steps    alone.
//	           deploy.erase_devices_metadata or
//	           deploy.erase_devices; then PUT .../states/power
//	           target "power off"
//	Cancel     deploying and "wait call-back": target deleted;      Observe reports Failed by Cancelled, and "power off". A node that was
//	           "clean wait", "inspect wait": target abort; then     locked meanwhile goes to error: deleted is asked for again.
//	           PUT .../states/power target "power off"
//	SetPower   PUT .../states/power target "power on",              power_state. Ironic itself asks again: while target_power_state is set
//	           "power off", or "soft power off" with timeout        nothing is asked. last_error of a power change, or Since and the time-out
//	           Timeouts.GracefulOff                                 passed: Ignored, with PowerOnIgnored or PowerOffIgnored.
//
// A 409 while a conductor has locked the node is Busy, a provision_state that does not allow the target Conflict, no node NotFound.
// Automated cleaning is off, so that only an Erase cleans. Ironic knows no deadline for an attempt: when it has passed, plan/outcome ends
// the attempt, and the next call of a higher number begins with what Cancel does. Power must not be switched behind Ironic's back: its
// power sync undoes that.
package hardware
