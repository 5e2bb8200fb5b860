package ironic

import (
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// powerOf returns the power state of a node. Ironic has null for a state that it does not know, and "error" for one that it could not change.
func powerOf(n node) hardware.PowerState {
	switch {
	case n.targetPower == "power on" || n.targetPower == "rebooting":
		return hardware.PowerTurningOn
	case n.targetPower == "power off" || n.targetPower == "soft power off":
		return hardware.PowerTurningOff
	case n.fault == faultPower:
		return hardware.PowerUnknown // what it was before the BMC could not be read
	case n.power == "power on":
		return hardware.PowerOn
	case n.power == "power off":
		return hardware.PowerOff
	default:
		return hardware.PowerUnknown
	}
}

// statusOf returns the status of the attempt that the node carries, and nil when it carries none.
func statusOf(n node) *hardware.AttemptStatus {
	if n.record.number == 0 {
		return nil
	}
	status := hardware.AttemptStatus{Number: n.record.number, State: hardware.AttemptRunning, Message: troubleOf(n)}
	switch {
	case n.record.outcome == outcomeNotInspected:
		status.State, status.Step = hardware.AttemptSucceeded, hardware.StepFinishing
	case n.record.hasFailed():
		status.State, status.Reason = hardware.AttemptFailed, n.record.outcome
		status.Message = endedMessage(n)
	case n.record.work == workEraseNone:
		status.Step = hardware.StepPoweringOff
		if isFree(n.state) && n.state != nodes.Available && powerOf(n) == hardware.PowerOff {
			status.State, status.Step = hardware.AttemptSucceeded, hardware.StepFinishing
		}
	case isVerifyFailed(n):
		status.State, status.Step, status.Reason = hardware.AttemptFailed, hardware.StepPoweringOff, hardware.ReasonInstallerPowerFailure
		status.Message = "Ironic cannot use the BMC: " + shorten(n.lastError)
	case !n.isBegun():
		status.Step = hardware.StepPoweringOff
	default:
		begunStatus(n, &status)
	}
	if status.State == hardware.AttemptSucceeded {
		status.Message = ""
	}
	status.IsRefusedByLimit = status.State == hardware.AttemptRunning && isRefused(n)
	return &status
}

// endedMessage returns where the work of an attempt that was ended has left the node, and what Ironic says of it.
func endedMessage(n node) string {
	message := "ended in Ironic's state " + string(n.state)
	if n.lastError != "" {
		message += ": " + shorten(n.lastError)
	}
	return message
}

// notResumed is what a conductor says at its start of work that the process before had under way.
const notResumed = "can't be resumed by conductor"

// isVerifyFailed reports whether Ironic has tried to read the power of a new node for this attempt and could not: it is in the state enroll again, and the state
// has changed since the attempt was stored. Without it: the password of the BMC is wrong, Ironic logs in with every look at the node, and the BMC locks the account. A
// restart of the conductor says nothing about the BMC.
func isVerifyFailed(n node) bool {
	return n.state == nodes.Enroll && n.lastError != "" && !isRefused(n) && !strings.Contains(n.lastError, notResumed) && n.record.enrolled != "" && n.record.enrolled != n.changed
}

// troubleOf returns what a person should know of a node at work.
func troubleOf(n node) string {
	if n.maintenance && !isFaultOfWork(n) {
		return "Ironic has the node in maintenance and does nothing with it: " + shorten(firstOf(n.maintenanceReason, n.fault, "without a reason"))
	}
	return shorten(n.lastError)
}

// Faults for which Ironic itself puts a node in maintenance. https://opendev.org/openstack/ironic/src/branch/master/ironic/common/faults.py
const (
	// faultPower is that of a node whose BMC it cannot read. Ironic ends the maintenance itself when the BMC answers.
	faultPower = "power failure"
	// faultClean is that of a node on which a step of a cleaning has failed. Nobody but an operator ends that maintenance.
	faultClean = "clean failure"
)

// isFaultOfWork reports whether the maintenance follows from work that has failed: the status of its attempt says so. The next attempt ends the maintenance,
// because Ironic refuses every work before. Without it: one step of an erase fails on a disk that answers late, and the host stays out of the pool until
// somebody knows that a maintenance that no person has begun must be ended.
func isFaultOfWork(n node) bool { return n.fault == faultClean && n.state == nodes.CleanFail }

// maintenanceOf returns why Ironic does nothing with the node; nil: it is not in maintenance. Ironic does not look at the power of such a node. Without it: the
// power-off that was read before the maintenance counts as confirmed, while people work on the server and have it on.
func maintenanceOf(n node, host hardware.Host) error {
	if !n.maintenance || isFaultOfWork(n) {
		return nil
	}
	why := shorten(firstOf(n.maintenanceReason, n.lastError, "without a reason"))
	failed := hardware.Errorf(hardware.Conflict, "use Ironic", host.String(), "Ironic has its node %s in maintenance and does nothing with it: %s. "+
		"When the server may be used again: baremetal node maintenance unset %s", n.uuid, why, n.uuid)
	failed.Reason = hardware.ReasonInstallerMaintenance
	switch n.fault {
	case "":
	case faultPower:
		failed = hardware.Errorf(hardware.Unreachable, "use Ironic", host.String(),
			"Ironic cannot read the power of its node %s: %s. Look at the BMC, its address and its credentials; Ironic goes on by itself when the BMC answers", n.uuid, why)
		failed.Reason = hardware.ReasonInstallerPowerFailure
	default:
		failed.Err = fmt.Errorf("%w (Ironic's fault is %q)", failed.Err, n.fault)
	}
	return failed
}

// isFree reports whether nothing is deployed on the node and nothing works on it.
func isFree(state nodes.ProvisionState) bool {
	return state == nodes.Available || state == nodes.Manageable || state == nodes.Enroll
}

// begunStatus sets the status of an attempt whose work Ironic has begun.
func begunStatus(n node, status *hardware.AttemptStatus) {
	status.Step = stepOf(n)
	if isUndecided(n) {
		if status.Step = hardware.StepFinishing; !isAtGoal(n) || isRefused(n) {
			status.Step = hardware.StepPoweringOff
		}
		return
	}
	switch n.state {
	case nodes.Deploying, nodes.DeployWait, nodes.Cleaning, nodes.CleanWait, nodes.Inspecting, nodes.InspectWait:
	case nodes.DeployFail, nodes.CleanFail, nodes.InspectFail, nodes.Error:
		if isUnexplained(n) {
			return
		}
		status.State, status.Reason = hardware.AttemptFailed, reasonOf(n)
		status.Message = "Ironic: " + shorten(firstOf(n.lastError, string(n.state)+" without an explanation"))
	case nodes.Active:
		endStatus(n, status, n.record.work == workInstall)
	case nodes.Manageable:
		if n.record.work.isErase() && powerOf(n) != hardware.PowerOff {
			status.Step = hardware.StepFinishing // an erase ends with the confirmed power-off
			return
		}
		endStatus(n, status, n.record.work != workInstall)
	case nodes.Deleting:
		status.Step = hardware.StepPoweringOff // somebody ends it, and Ironic powers the server off
	default:
		endStatus(n, status, false)
	}
}

// isUnexplained reports whether work has failed and the conductor has not said yet why. It writes the failed state first, and error and maintenance after it.
func isUnexplained(n node) bool {
	switch n.state {
	case nodes.DeployFail, nodes.CleanFail, nodes.InspectFail, nodes.Error:
		return n.reservation != "" && n.lastError == ""
	default:
		return false
	}
}

// endStatus ends the attempt. A node that has left its work for another state than the one it leads to was taken away from it.
func endStatus(n node, status *hardware.AttemptStatus, succeeded bool) {
	status.Step = hardware.StepFinishing
	if succeeded {
		status.State = hardware.AttemptSucceeded
		return
	}
	status.State, status.Reason = hardware.AttemptFailed, hardware.ReasonCancelled
	status.Message = "the node went to Ironic's state " + string(n.state) + " before the work was done"
}

// stepOf returns the step of work that Ironic has begun. The names of its steps are those of ironic/drivers/modules/agent.py.
func stepOf(n node) hardware.Step {
	switch n.state {
	case nodes.DeployWait, nodes.CleanWait, nodes.InspectWait:
		if n.deployStep == "" && n.cleanStep == "" || n.deployStep == "deploy" {
			return hardware.StepBooting
		}
	case nodes.DeployFail, nodes.CleanFail, nodes.InspectFail, nodes.Error:
		return failedStepOf(n.lastError)
	}
	switch {
	case n.deployStep == "write_image":
		return hardware.StepWriting
	case n.deployStep == "" && n.cleanStep == "":
		return hardware.StepPoweringOn
	case n.cleanStep != "":
		return hardware.StepErasing
	case n.deployStep == "deploy":
		return hardware.StepBooting
	default:
		return hardware.StepVerifying
	}
}

// failedStepOf returns the step at which work failed, by what Ironic says of it: its fields of the step are empty then.
func failedStepOf(lastError string) hardware.Step {
	switch {
	case strings.Contains(lastError, "callback"):
		return hardware.StepBooting
	case strings.Contains(lastError, "write_image"):
		return hardware.StepWriting
	case strings.Contains(lastError, "erase_devices"):
		return hardware.StepErasing
	default:
		return hardware.StepFinishing
	}
}

// reasonOf returns why Ironic's work failed, by what it says of it. Its texts are no interface: what is not recognized is InstallerFailed, with the text.
func reasonOf(n node) hardware.Reason {
	text := strings.ToLower(n.lastError)
	for _, known := range []struct {
		reason hardware.Reason
		parts  []string
	}{
		{hardware.ReasonAgentMissing, []string{"timeout", "callback"}},
		{hardware.ReasonAgentMissing, []string{"timeout reached while cleaning", "failed on step {}"}},
		{hardware.ReasonAgentSilent, []string{"timeout reached while cleaning"}},
		{hardware.ReasonDigestMismatch, []string{"checksum"}},
		{hardware.ReasonDigestMismatch, []string{"image failed to verify"}},
		{hardware.ReasonNoRootDevice, []string{"no suitable device"}},
		{hardware.ReasonNoRootDevice, []string{"no disk", "root device"}},
		{hardware.ReasonImageUnreachable, []string{"image", "download"}},
		{hardware.ReasonAgentSilent, []string{"failed to connect", "agent"}},
		{hardware.ReasonDiskError, []string{"error writing image to device"}},
		{hardware.ReasonDiskError, []string{"error erasing block device"}},
		{hardware.ReasonCancelled, []string{"by request", "abort"}},
	} {
		if hasAll(text, known.parts) {
			return known.reason
		}
	}
	return hardware.ReasonInstallerFailed
}

func hasAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
