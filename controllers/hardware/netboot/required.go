package netboot

import (
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/agent/protocol"
)

// refuseHardware refuses the agent of a server without the GPUs that the installation needs, and fails the attempt. It is called before the agent
// has its instructions, so that no disk was touched. Without it: a BMC cannot tell which GPUs its server has, a Machine with eight GPUs claims
// the server, its disk is overwritten, and only the verdict on the node finds that it has none.
//
// The inventory of the agent is stored with the failure: from then on the number of GPUs is known.
func refuseHardware(session *Session, found hardware.Inventory) *protocol.Refusal {
	difference := session.GPUs.Difference(found.PCIDevices)
	if session.Operation != hardware.OpInstall || difference == "" {
		return nil
	}
	session.Inventory = &found
	failAttempt(session, hardware.ReasonHardwareDiffers,
		difference+"; nothing was written to its disks: look whether a GPU has failed, or correct gpu.model, gpu.count or the hostSelector of the NodeType")
	return protocol.Refusalf(protocol.AttemptClosed, "%s", difference)
}
