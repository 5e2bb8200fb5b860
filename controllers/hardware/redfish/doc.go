// Package redfish drives BMCs over Redfish (DSP0266): power, boot override, virtual media and inventory. It is the BMC port's
// adapter and the only importer of gofish.
//
// A Client keeps one session per BMC and credentials, in memory only, and ends it when it is idle or the Client closes. A
// session that the BMC forgot is opened again once per call. BMCs freeze under bursts, so that at most one request is
// on its way to a BMC at any time, whoever asks; every request has a time-out and every call a bound on requests.
//
// Whatever a BMC answers ends as a *hardware.Error: gofish is kept from starting goroutines (its collection readers panic
// there on a null collection, out of reach of any recover), from leaving the BMC's host (it joins links to the address as
// text), and from posting a reset (v0.21.0 posts it to another action's target). Error texts hold neither credentials nor tokens.
package redfish
