package ironic_test

import (
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
	server "github.com/ingot-dev/ingot/test/ironic"
)

// stages are the states of a node in which Ironic is killed. What Ironic cannot go on with it fails when it starts; waits for an agent go on.
var stages = map[string]stage{
	"verifying": {
		begin:  func(h *held) error { return h.install(attemptOf(1)) },
		isHeld: inState("verifying"),
		finish: func(h *held) { h.isDone(1, h.install, false); h.expectWritten(1) },
	},
	"manageable, and the power goes on": {
		prepare: (*held).isInspected,
		begin:   func(h *held) error { return h.changePower(hardware.PowerOn)() },
		isHeld:  func(h *held) bool { return h.stored().TargetPower == "power on" },
		finish:  func(h *held) { h.reaches(hardware.PowerOn); h.isDone(2, h.install, false); h.expectWritten(1) },
	},
	"inspecting": {
		prepare: (*held).isInspected,
		begin:   func(h *held) error { return h.inspect(attemptOf(2)) },
		isHeld:  inState("inspecting"),
		finish:  func(h *held) { h.isDone(2, h.inspect, true) },
	},
	"manageable": {
		prepare: func(h *held) { h.isInstalled(); h.expectSucceeded(2, h.eraseWith(hardware.EraseNone)) },
		isHeld:  inState("manageable"),
		finish:  func(h *held) { h.isDone(3, h.install, false); h.expectWritten(2) },
	},
	"available": {
		prepare: func(h *held) {
			h.isInstalled()
			h.expectSucceeded(2, h.eraseWith(hardware.EraseNone))
			h.begins(3, h.awaitDocuments, inState("available"))
		},
		isHeld: inState("available"),
		finish: func(h *held) { h.isDone(3, h.install, false); h.expectWritten(2) },
	},
	"deploying": {
		prepare: (*held).isInspected,
		begin:   func(h *held) error { return h.install(attemptOf(2)) },
		isHeld:  inState("deploying"),
		finish:  func(h *held) { h.isDone(2, h.install, true); h.expectWritten(1) },
	},
	"waiting for an agent that installs": {
		prepare: func(h *held) { h.begins(1, h.install, inState("wait call-back")) },
		isHeld:  inState("wait call-back"),
		finish:  func(h *held) { h.isDone(1, h.install, false); h.expectWritten(1) },
	},
	"writing an image": {
		prepare: func(h *held) {
			h.agent.Set(server.AgentOptions{WriteImage: h.waitToWrite})
			h.begins(1, h.install, writesImage)
		},
		isHeld: writesImage,
		finish: func(h *held) { close(h.written); h.isDone(1, h.install, false); h.expectWritten(1) },
	},
	"active": {
		prepare: (*held).isInstalled,
		isHeld:  inState("active"),
		finish: func(h *held) {
			h.isDone(1, h.install, false)
			h.expectPower(hardware.PowerOn)
			h.expectWritten(1)
			h.isDone(2, h.install, false)
			h.expectWritten(2)
		},
	},
	"active, and the power goes off": {
		prepare: (*held).isInstalled,
		begin:   func(h *held) error { return h.changePower(hardware.PowerOff)() },
		isHeld:  func(h *held) bool { return h.stored().TargetPower == "power off" },
		finish:  func(h *held) { h.reaches(hardware.PowerOff); h.isDone(2, h.install, false); h.expectWritten(2) },
	},
	"deploying what is active": {
		prepare: func(h *held) { h.isInstalled(); h.expectPower(hardware.PowerOff) },
		begin:   func(h *held) error { return h.install(attemptOf(2)) },
		isHeld:  inState("deploying"),
		finish:  func(h *held) { h.isDone(2, h.install, true); h.expectWritten(2) },
	},
	"deleting for a release": {
		prepare: (*held).isInstalled,
		begin:   func(h *held) error { return h.eraseWith(hardware.EraseNone)(attemptOf(2)) },
		isHeld:  inState("deleting"),
		finish: func(h *held) {
			h.isDone(2, h.eraseWith(hardware.EraseNone), false)
			h.reaches(hardware.PowerOff)
			h.isDone(3, h.install, false)
			h.expectWritten(2)
		},
	},
	"deleting for an erase": {
		prepare: (*held).isInstalled,
		begin:   func(h *held) error { return h.eraseWith(hardware.EraseMetadata)(attemptOf(2)) },
		isHeld:  inState("deleting"),
		finish:  func(h *held) { h.isDone(2, h.eraseWith(hardware.EraseMetadata), false) },
	},
	"cleaning": {
		prepare: (*held).isInspected,
		begin:   func(h *held) error { return h.eraseWith(hardware.EraseMetadata)(attemptOf(2)) },
		isHeld:  inState("cleaning"),
		finish:  func(h *held) { h.isDone(2, h.eraseWith(hardware.EraseMetadata), true) },
	},
	"waiting for an agent that erases": {
		prepare: func(h *held) { h.begins(1, h.eraseWith(hardware.EraseFull), inState("clean wait")) },
		isHeld:  inState("clean wait"),
		finish:  func(h *held) { h.isDone(1, h.eraseWith(hardware.EraseFull), false) },
	},
	// The service that inspects is not there, so that this state is only written. Ironic waits for half an hour.
	"waiting for an inspection": {
		prepare: (*held).isInspected,
		begin:   func(h *held) error { return h.inspect(attemptOf(2)) },
		isHeld:  inState("inspecting"),
		killed: func(h *held) {
			h.ironic.Query("update nodes set provision_state = 'inspect wait', inspection_started_at = '2020-01-01 00:00:00.000000', reservation = null where name = ?", h.name())
		},
		finish: func(h *held) {
			h.expectFailed(2, h.inspect, hardware.ReasonInstallerFailed)
			h.expectSucceeded(3, h.inspect)
		},
	},
	// The agent dies with Ironic, whose time for it has passed. Ironic sets the node in maintenance then, which is none of a person.
	"erasing a disk by an agent that dies too": {
		prepare: func(h *held) {
			h.agent.Set(server.AgentOptions{Hangs: map[string]bool{"erase_devices": true}})
			h.begins(1, h.eraseWith(hardware.EraseFull), erases)
		},
		isHeld: erases,
		killed: func(h *held) {
			h.agent.Set(server.AgentOptions{Absent: true})
			h.ironic.Query("update nodes set provision_updated_at = '2020-01-01 00:00:00.000000' where name = ?", h.name())
		},
		finish: func(h *held) {
			status := h.untilEnded(1, h.eraseWith(hardware.EraseFull))
			if status.State != hardware.AttemptFailed || status.Reason == hardware.ReasonCancelled || !strings.Contains(status.Message, "Timeout reached while cleaning") {
				h.Errorf("the agent has died, the attempt is %s by %s: %s", status.State, status.Reason, status.Message)
			}
			h.until("in maintenance", func() bool { n := h.stored(); return n.Maintenance && n.Fault == "clean failure" })
			h.isDone(2, h.eraseWith(hardware.EraseFull), false)
			h.isDone(3, h.install, false)
		},
	},
}
