// Package direct implements hardware.Installer with three parts: a BMC for power and boot override, the boot service of package
// netboot for boot documents and the agent, and a netboot.Session per host as the only stored state.
//
// An attempt that boots the agent goes through these steps:
//
//	step                      what happens until the next step                                    who ends the step
//	PoweringOff               the power is cut until the BMC reports Off; then nothing else       Installer
//	                          can write to the disks. The boot override is set to Network,
//	                          for an erase to stay until its end.
//	Booting                   OpenedAt is stored, then power-on is requested, and again at        boot service
//	                          intervals, until the server fetches its boot document
//	Loading                   the server loads kernel and initrd until the agent registers        boot service
//	Registered, Writing,      the agent reports its progress and then its result                  boot service
//	Erasing, Verifying
//	Finishing                 Install: the attempt has succeeded once the boot override is        Installer
//	                          cleared, for which there is time since Registered; the agent
//	                          reboots from the disk. Erase, Inspect: the power is cut; the
//	                          attempt succeeds when the BMC reports Off.
//
// # Decisions
//
// nextAction decides what to do next from the power state, the session and the time; the Installer carries out one action per call and
// never sleeps. nextPowerRequest decides how a change of power is requested and when it counts as ignored, for attempts and for
// SetPower. A failed call to the BMC is returned as it is and does not change the session, with one exception: a power-on that was
// stored before it was requested stays stored. Time-outs and the deadline apply also while the BMC fails. When a server loses its
// power during an attempt, it is booted from the network again within the same attempt.
//
// The session does not store whether a host at Booting has powered on; until the process observes that, Observe reports PoweringOn. The
// process keeps its own observations in memory (attemptRecord), so that a power that came on and was lost is restored at once. After a
// restart the time-outs that depend on these observations begin again. A boot order that is changed, because the BMC has no boot override, is stored before
// and put back by whichever process clears the boot.
//
// A failed attempt does not change the power, so that a person can look at the console. The boot service no longer serves the server,
// and the next attempt begins with a confirmed power-off.
//
// # Guards
//
// The disk is written only after the BMC has reported Off. Example: a Machine is released while its kernel hangs, and the BMC accepts
// the power-off without effect. If the attempt went on, the server would still run the old operating system with the tenant's
// workload; it could write to the disk that is being erased, or join a cluster as a node that Ingot believes to be gone. So an unknown
// power state, a failed request and PoweringOff are all not Off.
//
// Inspect by the BMC boots nothing, so it is fast and does not touch a disk. What an agent reported in earlier attempts is kept where it is more
// complete. Inspect by the agent is an attempt as above that begins only on a server that is off: it fails where the server is on, and cuts no power
// before it has booted the agent.
package direct
