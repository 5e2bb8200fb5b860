// Package sameserver decides whether two BareMetalHosts are one server.
//
// Two hosts are one server if any of these is known of both and equal: the BMC with the system path, the boot MAC address, the serial
// number together with manufacturer and model, and the system UUID that the agent read from DMI. What is not known is no evidence: it makes
// two hosts neither equal nor different, with one exception. A BMC address without a system path may mean every system of that BMC, so it
// is the same server as each of them.
//
// A UUID that a BMC reports is never compared, because its byte order and its origin differ from those of DMI. A system UUID is no evidence
// either where manufacturer and model are equal and the serial numbers differ, because vendors copy UUIDs more often than serial numbers.
//
// Two hosts have one key of Host.Keys in common wherever Compare finds evidence, so that an index by key finds every candidate.
package sameserver
