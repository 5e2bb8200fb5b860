// Package direct is the Installer for servers that Ingot drives by itself: a BMC for power and boot override, the boot
// service (netboot) for boot documents and the agent, and the netboot.Session as the only memory.
//
//	PoweringOff  until the BMC confirms Off: nothing else may write to the disks
//	             then the boot override Network, once
//	Booting      OpenedAt is written first, then the power is turned on, and again at intervals;
//	             until the boot document is fetched                         (netboot moves on)
//	Loading      until the agent registers                                  (netboot moves on)
//	Registered   Writing | Erasing, Verifying: the agent reports            (netboot moves on)
//	Finishing    the agent is done. Install: succeeded, the agent reboots from the disk by itself.
//	             Erase: the power is turned off; succeeded when the BMC confirms it
//
// Whether a host at Booting has powered on is seen and not written: until then Observe shows PoweringOn. What was seen is remembered by
// the process alone, so that a power that came on and went is restored at once; a process that did not see it gives the power-on its
// time anew.
//
// How a change of power is asked for, and when it counts as ignored, is decided by one function (nextPower) for attempts and for
// SetPower. What to do next is decided by a pure function (decide) from power, session and time; the Installer does one
// thing of it per call. Nothing sleeps: the caller calls again. A call to the BMC that fails is returned with its type
// and changes nothing in the session, save that a power-on which was recorded before it was asked for stays recorded; time-outs
// and the deadline apply nevertheless. Power that is lost under way is restored with a network boot, within the same attempt.
//
// A failed attempt leaves the power as it is, for whoever looks at the console; the boot service answers it no more, and the
// next attempt begins with a confirmed power-off.
//
// Inspect reads the BMC's inventory and boots nothing: it is fast and touches no disk. What an agent reported in earlier
// attempts is kept where the BMC knows less.
package direct
