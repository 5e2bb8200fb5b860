package netboot

import (
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// refuseHardware refuses the agent of a server without the GPUs or the other hardware that the installation needs, and fails the attempt. It is called before the agent
// has its instructions, so that no disk was touched. Without it: a BMC cannot tell which GPUs its server has, a Machine with eight GPUs claims
// the server, its disk is overwritten, and only the verdict on the node finds that it has none.
//
// The inventory of the agent is stored with the failure: from then on it is known what the server has.
func refuseHardware(session *Session, found hardware.Inventory) *protocol.Refusal {
	if session.Operation != hardware.OpInstall {
		return nil
	}
	reason, advice := hardware.ReasonHardwareDiffers, "look whether a GPU has failed, or correct gpu.model, gpu.count or the hostSelector of the NodeType"
	difference := session.GPUs.Difference(found.PCIDevices)
	if difference == "" {
		reason, advice = hardware.ReasonHardwareInsufficient, "repair the server, or lower spec.hardware of the NodeType"
		difference = session.Requirements.Difference(found)
	}
	if difference == "" {
		return nil
	}
	session.Inventory = &found
	failAttempt(session, reason, difference+"; nothing was written to its disks: "+advice)
	return protocol.Refusalf(protocol.AttemptClosed, "%s", difference)
}
