// Package protocol defines the messages between the agent in the ramdisk and the boot service: paths, JSON bodies, refusal codes and
// limits. It contains no logic of either side, so that neither side imports the other.
//
// Every request carries the token of the boot as "Authorization: Bearer TOKEN" and the key of the agent in the header Ingot-Agent-Key. The
// agent makes its key at random when it starts, and the first key that registers with a token is the only one that the token serves. Where its server
// has a TPM 2.0, the agent asks for a key that is sealed for that TPM, and has that one from then on: who speaks in the session has opened it there.
//
// Both sides refuse unknown JSON fields: they come from
// the same release, so an unknown field is an error.
//
//	POST /agent/v1/challenge     TPM          -> Challenge
//	POST /agent/v1/register      Registration -> Instructions
//	POST /agent/v1/disks         Disks        -> DiskDecision
//	GET  /agent/v1/config-drive               -> ConfigDrive
//	POST /agent/v1/progress      Progress     -> 204
//	POST /agent/v1/result        Result       -> 204
//	POST /agent/v1/log           LogChunk     -> LogReceipt
//
// The response to a refused request is a Refusal. The config drive is written only after its agent has asked for it: until then the answer is
// NotYet, and the agent asks again.
package protocol
