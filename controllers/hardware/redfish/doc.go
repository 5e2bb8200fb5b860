// Package redfish implements hardware.BMC over Redfish (DSP0266): power, boot override, virtual media and inventory. Only this package
// imports gofish.
//
// A Client keeps one session per BMC and credentials, in memory only, and ends it when it is idle or when the Client is closed. When a BMC
// has lost the session, a call opens a new one once. BMCs stop responding under bursts of requests, so at most one request is sent to
// a BMC at any time. Every request has a time-out, and every call has a limit of requests.
//
// Every failure is returned as a *hardware.Error, because a BMC may send anything. Three parts of gofish are not used for that reason. Its
// readers of collections start goroutines, in which a null collection causes a panic that no caller can recover. It joins links to the
// address as text, so that a link could lead to another host; the transport refuses that. Its Reset (v0.21.0) posts to the
// target of another action. Error texts contain neither credentials nor tokens.
package redfish
