package ironic

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// A node is reserved by its instance_uuid, as Nova and Ironic's allocations do it: whoever has set that has the node, and Ironic refuses another one until it is removed. An undeployment
// removes it. Without it: a node is made available for an installation that waits for its turn, Nova deploys it for its tenant, the installation counts as done because
// the node is active, and the next release destroys what that tenant has.

// uuidForm is that of a UUID. Those of the objects of Kubernetes have it.
var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// reservationOf returns the instance_uuid by which a host reserves its node: its UID, by which people find the host. Of a UID that is no UUID it is one of version 8.
func reservationOf(uid string) string {
	if form := strings.ToLower(uid); uuidForm.MatchString(form) {
		return form
	}
	sum := sha256.Sum256([]byte(uid))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// reserving returns what reserves the node for the host; nothing where it is reserved. Ironic refuses it where somebody else has reserved the node since it was read.
func reserving(n node, host hardware.Host) nodes.UpdateOpts {
	if n.instanceUUID != "" {
		return nil
	}
	instance := reservationOf(host.UID)
	return nodes.UpdateOpts{set("/instance_uuid", instance), set("/extra/"+extraInstance, instance)}
}

// releasingReservation returns what ends a reservation of ours. That of somebody else stays.
func releasingReservation(n node) nodes.UpdateOpts {
	if n.instanceUUID == "" || isForeign(n) {
		return nil
	}
	return nodes.UpdateOpts{nodes.UpdateOperation{Op: nodes.RemoveOp, Path: "/instance_uuid"}}
}

// flagOfReservation returns the flag by which a person ends a reservation of ours with baremetal node unset; empty: there is none, or it is somebody else's.
func flagOfReservation(n node) string {
	if releasingReservation(n) == nil {
		return ""
	}
	return " --instance-uuid"
}

// isForeign reports whether somebody else has deployed or reserved the node. A node that an earlier version of this package has installed is not reserved.
func isForeign(n node) bool {
	switch {
	case n.instanceUUID != "" && n.instanceUUID != n.record.instance:
		return true
	case n.record.host == "", n.record.number == 0 && n.instanceUUID == "":
		return !isFree(n.state)
	default:
		return false
	}
}

// foreignUse returns the refusal of a node that somebody else has deployed or reserved: whose it is, and what a person can do.
func foreignUse(n node, host hardware.Host) *hardware.Error {
	err := hardware.Errorf(hardware.Conflict, "use Ironic", host.String(), "Ironic's node %s is in the state %s and was not deployed by Ingot: undeploy it, or take the host out", n.uuid, n.state)
	if n.instanceUUID != "" {
		err = hardware.Errorf(hardware.Conflict, "use Ironic", host.String(), "Ironic's node %s is in the state %s and belongs to the instance %s, which was not deployed by Ingot: delete that instance "+
			"where it was made, such as in Nova (openstack server delete %s), or take the host out. If it exists no more: baremetal node unset --instance-uuid %s",
			n.uuid, n.state, n.instanceUUID, n.instanceUUID, n.uuid)
	}
	err.Reason = hardware.ReasonInstallerConflict
	return err
}

// createOptions are those of a node that is reserved from its beginning. The library has no name for the instance.
type createOptions struct {
	nodes.CreateOpts
	instance string
}

// ToNodeCreateMap implements nodes.CreateOptsBuilder.
func (o createOptions) ToNodeCreateMap() (map[string]any, error) {
	body, err := o.CreateOpts.ToNodeCreateMap()
	if err == nil {
		body["instance_uuid"] = o.instance
	}
	return body, err
}
