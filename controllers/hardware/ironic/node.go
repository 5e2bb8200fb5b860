package ironic

import (
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// nodeFields are the fields of a node that the list asks for. Neither driver_info nor instance_info is among them: they have secrets, and
// driver_internal_info, which has the cached steps of every agent, is large.
var nodeFields = []string{
	"uuid", "name", "power_state", "target_power_state", "provision_state", "target_provision_state", "provision_updated_at", "maintenance",
	"maintenance_reason", "fault", "last_error", "instance_uuid", "deploy_step", "clean_step", "extra", "properties", "reservation", "boot_interface", "deploy_interface",
	"protected", "automated_clean",
}

// fieldsOf returns the fields of a node that the list asks a server of this version for.
func fieldsOf(minor int) []string {
	if minor < minorChildren {
		return nodeFields
	}
	return append(slices.Clone(nodeFields), "parent_node")
}

// Keys in the extra of a node.
const (
	extraHost    = "ingot_host"
	extraAttempt = "ingot_attempt"
	extraWork    = "ingot_work"
	extraFrom    = "ingot_from"
	extraOutcome = "ingot_outcome"
	// extraEnrolled has the time of the last change of its provision state of a node in the state enroll, when the attempt was stored.
	extraEnrolled = "ingot_enrolled"
	// extraCreated is true where this package has created the node: driver and credentials of any other node are those of the site.
	extraCreated = "ingot_created"
	// extraLive is true where the last installation is a live ISO.
	extraLive = "ingot_live"
	// extraInstance has the instance_uuid by which the node is reserved, also after an undeployment has removed it.
	extraInstance = "ingot_instance"
	// extraCleaning has what automated_clean was before this package turned it off: true, false or null.
	extraCleaning = "ingot_automated_clean"
)

// outcomeNotInspected is the outcome of an inspection of a node whose driver has none. It has succeeded: what Ironic knows of the server are the properties and
// the ports of the node.
const outcomeNotInspected hardware.Reason = "NotInspected"

// work is what an attempt does: an operation, and for an erase its mode.
type work string

// The kinds of work.
const (
	workInspect       work = "Inspect"
	workInstall       work = "Install"
	workEraseNone     work = "Erase:None"
	workEraseMetadata work = "Erase:Metadata"
	workEraseFull     work = "Erase:Full"
)

// eraseWork maps the modes to the kinds of work.
var eraseWork = map[hardware.EraseMode]work{
	hardware.EraseNone: workEraseNone, hardware.EraseMetadata: workEraseMetadata, hardware.EraseFull: workEraseFull,
}

// isErase reports whether disks or the undeployment are the work.
func (w work) isErase() bool {
	return w == workEraseNone || w == workEraseMetadata || w == workEraseFull
}

// node is what is read of a node of Ironic.
type node struct {
	uuid, name         string
	parent             string // its UUID; empty also where Ironic knows no parents
	power, targetPower string
	state              nodes.ProvisionState
	changed            string
	// reservation is the conductor that works on the node; empty: none.
	reservation string
	// isProtected says that Ironic undeploys and rebuilds the node for nobody.
	isProtected bool
	// automatedClean is what a person or this package has set: true, false or null.
	automatedClean    string
	maintenance       bool
	maintenanceReason string
	fault             string
	lastError         string
	instanceUUID      string
	deployStep        string
	cleanStep         string
	properties        map[string]any
	traces            traces
	// isProven says that this process has seen the installation from its request to its end, so that its outcome need not be stored at once.
	isProven bool
	// bootInterface and deployInterface are those of the node, which an installation may override.
	bootInterface, deployInterface string
	record                         record
}

// record is what this package has stored in the extra of a node.
type record struct {
	host   string
	number int64
	work   work
	from   string
	// enrolled is empty unless the node was in the state enroll when the attempt was stored.
	enrolled string
	outcome  hardware.Reason
	// isCreated says that this package has created the node.
	isCreated bool
	// isKnown says that the node is or was that of a host, as far as this is known: to forget one removes what says so.
	isKnown bool
	// cleaning is what the automated_clean of the node was; empty: that is not known.
	cleaning string
	// instance is the instance_uuid by which the node is reserved, or was.
	instance string
	// isLive says that the last installation that was requested is a live ISO.
	isLive bool
}

// isBegun reports whether the work of the attempt was requested and Ironic has acted on it, if only to refuse it: its state has changed since. A node to install is
// made available before, through the state cleaning in which nothing is cleaned, and is manageable again where Ironic has no worker for that.
func (n node) isBegun() bool {
	isOnItsWay := n.record.work == workInstall && (n.state == nodes.Manageable || n.state == nodes.Cleaning)
	return n.record.from != "" && !isOnItsWay && (n.record.from != n.changed || n.record.outcome == outcomeDone)
}

// newNode returns what is read of a node as gophercloud decodes it.
func newNode(n nodes.Node) node {
	read := node{
		uuid: n.UUID, name: n.Name, parent: n.ParentNode, power: n.PowerState, targetPower: n.TargetPowerState, state: nodes.ProvisionState(n.ProvisionState),
		changed: timeText(n.ProvisionUpdatedAt), maintenance: n.Maintenance, maintenanceReason: n.MaintenanceReason, fault: n.Fault,
		reservation: n.Reservation, lastError: n.LastError, instanceUUID: n.InstanceUUID, properties: n.Properties, deployStep: stepName(n.DeployStep), cleanStep: stepName(n.CleanStep),
		record: record{
			host: text(n.Extra[extraHost]), work: work(text(n.Extra[extraWork])), from: text(n.Extra[extraFrom]),
			outcome: hardware.Reason(text(n.Extra[extraOutcome])), enrolled: text(n.Extra[extraEnrolled]),
			instance: text(n.Extra[extraInstance]), cleaning: text(n.Extra[extraCleaning]),
		},
	}
	read.traces = newTraces(n)
	read.bootInterface, read.deployInterface = n.BootInterface, n.DeployInterface
	read.isProtected, read.automatedClean = n.Protected, cleaningText(n.AutomatedClean)
	_, read.record.isKnown = n.Extra[extraHost]
	read.record.isLive, _ = n.Extra[extraLive].(bool)
	read.record.isCreated, _ = n.Extra[extraCreated].(bool)
	// JSON decodes a number as a float64, which is exact up to 2^53.
	if number, ok := n.Extra[extraAttempt].(float64); ok {
		read.record.number = int64(number)
	}
	return read
}

// timeText returns a time as it is stored and compared. A node that was just created has none, which is the zero time.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// withTimeOf returns the node with the time of the other one where that is the same time with more digits. What Ironic answers to a change comes from its
// conductor with whole seconds, while it tells microseconds when it is read. Without it: every change of a node counts as the beginning of its work.
func (n node) withTimeOf(before node) node {
	short, err := time.Parse(time.RFC3339Nano, n.changed)
	long, err2 := time.Parse(time.RFC3339Nano, before.changed)
	if err == nil && err2 == nil && n.state == before.state && short.Equal(long.Truncate(time.Second)) {
		n.changed = before.changed
	}
	return n
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func stepName(step map[string]any) string { return text(step["step"]) }
