package ironic

import (
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// interfaceRamdisk is Ironic's deploy interface that writes nothing and has the server boot from a medium.
const interfaceRamdisk = "ramdisk"

// liveInfo returns the instance_info of a live ISO. The deploy interface in it is that of this installation alone: the node keeps its own, and Ironic forgets the
// other with the installation. Ironic has no checksum for a boot_iso. https://docs.openstack.org/ironic/latest/admin/ramdisk-boot.html
func liveInfo(image hardware.Image) map[string]any {
	return map[string]any{"boot_iso": image.URL, "deploy_interface": interfaceRamdisk}
}

// refusalOfInterfaces returns why the interfaces of the node do not suit the install; nil: they do. Without it: Ironic leaves the config drive out, the server runs
// and never joins; or it writes no image, boots whatever is on the disk, and calls the node deployed.
func refusalOfInterfaces(n node, c call) *hardware.Error {
	if c.work != workInstall || n.isBegun() {
		return nil
	}
	switch {
	// In Ironic 21.4 these alone, with idrac-redfish-virtual-media, have the capability ramdisk_boot_configdrive.
	case c.isLive && !strings.HasSuffix(n.bootInterface, "redfish-virtual-media"):
		return hardware.Errorf(hardware.Unsupported, "install a live ISO", c.host.String(), "Ironic's node %s has the boot interface %q, by which a live ISO gets no config drive, so that the "+
			"server never joins: give the node the boot interface redfish-virtual-media (spec.ironic.bootInterface for nodes that Ingot creates), or use a disk image", n.uuid, n.bootInterface)
	case !c.isLive && n.deployInterface == interfaceRamdisk:
		return hardware.Errorf(hardware.Unsupported, "install", c.host.String(), "Ironic's node %s has the deploy interface ramdisk, which writes no image: give the node another one, such as direct, "+
			"or use an OSImage of the format live-iso", n.uuid)
	}
	return nil
}

// mustUndeploy reports whether what is on the node has to go before the install, because it or what follows is a live ISO. Without it: Ironic rebuilds the node by
// the interfaces of the new installation alone, the old config drive stays in the server's virtual USB port, and the new system reads the old documents.
func mustUndeploy(n node, c call) bool {
	return c.work == workInstall && (c.isLive || n.record.isLive) && (n.state == nodes.Active || n.state == nodes.DeployFail)
}

// preparingAfter is preparing, after what has to go before.
func preparingAfter(n node, c call) action {
	if mustUndeploy(n, c) {
		return undeploying(n)
	}
	return preparing(n, c.work)
}

// undeploying undeploys a node whose power is confirmed off.
func undeploying(n node) action {
	switch {
	case n.targetPower != "":
		return action{kind: actionWait}
	case powerOf(n) != hardware.PowerOff:
		return action{kind: actionPower}
	default:
		return action{kind: actionRequest, target: nodes.TargetDeleted}
	}
}
