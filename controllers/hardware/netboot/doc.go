// Package netboot is the boot service: it hands a server that network-boots its boot document, the agent's kernel and
// initrd, and then serves the agent.
//
//	GET  /boot/{mac}             the boot document, an iPXE script; the MAC with colons, hyphens or bare, any case
//	GET  /files/kernel           the agent's kernel
//	GET  /files/initrd           the agent's initrd
//	POST /agent/v1/...           the agent's service, see agent/protocol
//
// # Boot documents
//
// One of three scripts is served, always with status 200, because iPXE does not read the body of an error:
//
//   - boot: a running attempt between the moment we powered the host on (Session.OpenedAt) and its deadline. The script
//     loads kernel and initrd with a token for this boot; when that fails it asks again, and never falls through to the disk.
//   - leave: "exit 1", the firmware takes the next boot device. For a MAC that is nobody's, a host without an attempt,
//     one that was not powered on by us yet, one whose attempt succeeded or is done and about to reboot.
//     The status is not 0 because UEFI stops walking the boot order when an option returns success.
//   - hold: "poweroff", or waiting where iPXE lacks that. For a host whose install or erase failed or ran out of time
//     after we had powered it on: what is on its disk is unknown, and unknown must not come up.
//
// When the store cannot be reached the answer is 503 with Retry-After in seconds: iPXE asks again after that time, for as
// long as it takes (src/net/tcp/httpcore.c; a date instead of a number would be a fixed pause).
//
// Each boot document within an attempt counts in Session.Boots and makes the tokens before it worthless. The fourth
// fails the attempt with BootLoop.
//
// # Tokens
//
// A token is an HMAC-SHA256 over host uid, attempt, boot number and expiry (the attempt's deadline). Any replica
// verifies it without a store; then the session says whether it is the current one. Kernel and initrd need no token:
// they hold no secret.
//
// # Results
//
// A failed result settles the attempt (AttemptFailed, the step stays where it failed). A good result moves the step to
// StepFinishing and leaves the attempt running: whoever drives the BMC settles it, for an erase only after the
// confirmed power-off. Of what an agent reports in between not all is written: a step that takes less than
// Options.ProgressInterval goes with the next one, bytes are written by quarters. Its registration is no write of its own: what it
// found goes with its first progress or its result. An agent repeats that in its result, so that nothing is lost when the replica that
// it registered with ends.
package netboot
