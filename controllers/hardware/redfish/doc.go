// Package redfish implements hardware.BMC over Redfish (DSP0266): power, boot override, virtual media and inventory. Only this package
// imports gofish.
//
// # Sessions
//
// A Client keeps one session per BMC and credentials, in memory only, and ends it when it is idle or when the Client is closed. Where a BMC has
// no sessions, the credentials are sent with every request, and for some minutes where it has none left: before that, the sessions that this installation
// left or could not end are ended. When a BMC has lost the session, a call opens a new one once; when it refuses
// a new one, the call is tried once more. The credentials are refused (Unauthorized) only by an answer that means them: not by a limit of
// sessions, a locked account or a missing licence. Refused credentials are not tried again for a while.
//
// # Requests
//
// BMCs stop responding under bursts of requests, so at most one request is sent to a BMC at any time. Every request has a time-out, and every
// call has a limit of requests. A BMC that asks to be tried later (Retry-After) gets no request before: calls fail with Busy, and the error has
// the time. Redirects are followed on the same host with method and body. A request on a kept connection that the BMC has closed is sent
// once more where that is safe. A change is sent with the ETag in each of the forms that BMCs compare with. A byte-order mark before an answer is skipped, an
// empty answer is an error that names the resource, and so is a BMC that speaks no TLS 1.2.
//
// # Power
//
// A server is turned off with ForceOff. Where the BMC has none, the operating system is asked to stop with what the BMC has, one request of each kind a
// minute. That it is off is only said by the power state.
//
// # Boot override
//
// The override is read, changed and read back at the system's settings object where that has members of the override, otherwise at the
// system, and where the one refuses the change at the other. It is for a UEFI boot, and an override for a BIOS boot counts as none.
// What a BMC shows late is read again for some seconds. Where no override reaches a boot source, its boot options are put first in the persistent boot order.
// The order before that is kept, and put back when the boot is cleared.
//
// # Inventory
//
// An inventory is complete or it fails. Its resources are decoded by this package, member by member, because a member that one product mistypes must
// not cost the resource. The PCI devices are returned as the lists of the BMC, in which the same GPU may be several times: the functions of the
// system, those in chassis, and the GPUs among the processors of the server and of its baseboards. Where none of these has a GPU, the trees of vendors are
// searched. What may be a GPU and cannot be told is a device without ids, which leaves the count unknown. plan/inventory compares the lists.
//
// # Errors
//
// Every failure is returned as a *hardware.Error, because a BMC may send anything. Its text has the request and the words of the BMC, and
// neither credentials nor tokens. Five parts of gofish are not used. Its readers of collections start goroutines, in which a null collection
// causes a panic that no caller can recover. It joins links to the address as text, so that a link could lead to another host; the
// transport refuses that. Its Reset (v0.21.0) posts to the target of another action. Its errors lose messages that are not in an array
// within error. Its client fails when any member of the service root has an unexpected type.
package redfish
