// Package netboot is the boot service: it serves boot documents and the agent's kernel and initrd to servers that boot from the
// network, and then serves the agent.
//
//	GET  /boot/{mac}             the boot document, an iPXE script; the MAC with colons, hyphens or neither, in any case
//	GET  /files/kernel           the agent's kernel
//	GET  /files/initrd           the agent's initrd
//	POST /agent/v1/...           the service for the agent, see agent/protocol
//
// # Boot documents
//
// The boot document is one of three scripts. It is always sent with status 200, because iPXE does not read the body of an error.
//
//   - boot loads kernel and initrd with a token for this boot. When loading fails it requests the boot document again; it never
//     continues with the disk. It is served for a running attempt, from the power-on by Ingot (Session.OpenedAt) until its deadline.
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
// Each boot document within an attempt increments Session.Boots and invalidates all earlier tokens. The fourth one fails the attempt
// with BootLoop.
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
// one, and bytes are stored by quarters. The registration is not stored on its own; the inventory in it is stored with the first
// progress or with the result. The agent repeats the inventory in its result, so that it is not lost when the replica with which the
// agent registered ends.
package netboot
