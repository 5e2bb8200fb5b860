// Package protocol is what the agent in the ramdisk and the boot service say to each other: paths, JSON bodies, refusal
// codes and limits. It holds no logic, so that neither side pulls in the other.
//
// Every request carries the attempt's token as "Authorization: Bearer TOKEN". JSON is strict in both directions: both
// ends come from the same release, so an unknown field is a fault and never a courtesy.
//
//	POST /agent/v1/register      Registration -> Instructions
//	GET  /agent/v1/config-drive               -> ConfigDrive
//	POST /agent/v1/progress      Progress     -> 204
//	POST /agent/v1/result        Result       -> 204
//
// A refused request is answered with a Refusal.
package protocol
