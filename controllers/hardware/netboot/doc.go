// Package netboot is the boot service: it serves boot documents and the agent's kernel and initrd to servers that boot from the
// network, and then serves the agent.
//
//	GET  /boot/{mac}             the boot document, an iPXE script; the MAC with colons, hyphens or neither, in any case
//	GET  /identity               which installation's boot service it is; the manager asks a NodeProvider's address for it
//	GET  /files/kernel           the agent's kernel
//	GET  /files/initrd           the agent's initrd
//	POST /agent/v1/...           the service for the agent, see agent/protocol
//
// # Boot documents
//
// The boot document is one of four scripts. It is always sent with status 200, because iPXE does not read the body of an error.
//
//   - boot loads kernel and initrd with a token for this boot. When loading fails it requests the boot document again, at the address that the
//     document came from, with the file that failed and iPXE's error (Findings.BootLoadFailed); it never continues with the disk. A server that
//     asks for no kernel within a minute is a finding too (Findings.KernelNotRequested), and so is one that
//     fetched its kernel and registers no agent for minutes (Findings.NoAgentRegistered). It is served for a running attempt, from the power-on by Ingot
//     (Session.OpenedAt) until its deadline.
//   - wait asks again after 30 seconds. It is served for a running attempt while its agent is at work.
//   - exit is "exit 1": the firmware continues with the next boot device. It is served for an unknown MAC, for a host without an
//     attempt, for one that Ingot has not powered on yet, and for one whose attempt succeeded or is about to reboot. The status
//     is not 0, because UEFI stops at the first boot option that returns success.
//   - hold is "poweroff", or an endless wait where iPXE lacks that command. It is served for a host whose installation or erase
//     failed or exceeded its deadline after Ingot had powered it on.
//
// Hold guards the disk. Example: the installation of a host fails with DigestMismatch, and a person presses the power button. With the
// script exit the firmware would try the disk, which holds an unverified image or parts of the former tenant's system.
//
// When the store does not answer, the response is 503 with Retry-After in seconds: iPXE repeats the request after that time, without
// a limit (src/net/tcp/httpcore.c; with a date instead of a number it would wait for a fixed time).
//
// Each boot script within an attempt increments Session.Boots and invalidates all earlier tokens. The fourth one fails the attempt
// with BootLoop.
//
// # One boot, one agent
//
// Anybody on the provisioning network can request the boot document of a server whose MAC address is known. So the token in it is not
// enough: the agent makes a key at random, and the first key that registers with the token owns the boot. The digest of the key is
// stored before the registration is answered, so that every replica decides in the same way. Every later request must have that key;
// another key is refused and reported (Findings.AnotherAgent), and fails the attempt (AnotherAgent): which of the two is the server's is not known. Addresses are
// reported and decide nothing.
//
// Once an agent has registered, the next boot script is served only when the agent has not been heard for some time (silence), or
// when the Installer has seen that the power was lost and boots the server again (StepBooting). Every other request gets the wait script,
// does not count as a boot, and is reported (Findings.BootRequestedAgain).
//
// A registration is refused, and fails the attempt before a disk is changed, when the server has no NIC with the boot MAC address
// (WrongServer). Other differences from the known hardware are reported (Findings.ServerDiffers), or refused with
// HostSettings.StrictIdentity.
//
// Where the server has a TPM 2.0, the agent first asks for its key, which the service makes from the boot, the endorsement key and an object in the TPM, and seals for
// both (package tpm): who speaks in the session has opened it on that server. A registration without the TPM that is known of the host fails the attempt (TPMDiffers).
//
// Before it changes a disk the agent lists those that it has found, and the service decides (package diskrules): to which one the image is written, or whether all
// that must be erased are there. No answer to an agent has a serial number, a UUID or a disk that the host is known by.
//
// # Config drive
//
// The documents of a config drive hold a credential of the tenant's cluster. The boot service holds none: when an agent asks for the config
// drive, it stores that (Session.ConfigDriveAwaitedAt) and answers NotYet, until the machine controller has made the credential and written the
// documents for this attempt.
//
// What remains: a neighbour that requests the boot document and registers before the server does gets the image URL, and the config drive if its documents are
// written before the server's own agent registers, which then ends the attempt.
//
// # Logs of agents
//
// An agent sends its log while it works (agent/protocol), and the rest of it before its result, because nothing is taken after that. Package agentlogs
// keeps the last 64 KiB, without the credentials of the request and without anything that a terminal acts on.
//
// # TLS
//
// Agents ask by HTTPS where HostSettings.SecureURL is set: the same service at another address, with a certificate of an authority of its own, whose
// pins are on the command line (package pin). Boot documents, kernel and initrd go by HTTP, because iPXE and firmware know no such authority. So who can
// change what is sent on the provisioning network can change the command line of a network boot; boot media have it inside.
//
// # Limits
//
// The number of requests for boot documents is limited for each MAC address of a host, and for all addresses that are nobody's together.
// What exceeds a limit gets 503 with Retry-After. An address that is nobody's costs no read from the store behind the cache.
//
// # Tokens
//
// A token is an HMAC-SHA256 over host UID, attempt, boot number and expiry (the deadline of the attempt). Every replica can verify it
// without the store; the session then says whether it is the current one. Kernel and initrd need no token, because they contain no
// secret.
//
// # Progress and results
//
// A result with a failure ends the attempt (AttemptFailed); the step does not change. A successful result sets the step StepFinishing and
// leaves the attempt running: the Installer ends it, for an erase only after the confirmed power-off.
//
// Not all progress is stored, in order to limit writes: a step that is shorter than Options.ProgressInterval is stored with the next
// one, and bytes are stored by quarters. A report that changes nothing is stored after six intervals, because it shows that the agent is
// alive. The registration is stored at once, with the inventory in it.
package netboot
