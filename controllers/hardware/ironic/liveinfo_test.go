package ironic

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestInterfacesThatDoNotSuitTheImageAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		boot, deploy    string
		isLive, refused bool
	}{
		"a live ISO by Redfish":               {boot: "redfish-virtual-media", deploy: "direct", isLive: true},
		"a live ISO by the Redfish of iDRAC":  {boot: "idrac-redfish-virtual-media", deploy: "direct", isLive: true},
		"a live ISO by the network":           {boot: "ipxe", deploy: "direct", isLive: true, refused: true},
		"a disk image by the network":         {boot: "ipxe", deploy: "direct"},
		"a disk image by what writes nothing": {boot: "redfish-virtual-media", deploy: "ramdisk", refused: true},
	} {
		n := newTestNode(nodes.Available, workInstall, "")
		n.bootInterface, n.deployInterface = c.boot, c.deploy
		asked := newTestCall(7, workInstall)
		asked.isLive = c.isLive
		got := nextAction(n, asked)
		if (got.kind == actionRefuse) != c.refused || c.refused && hardware.KindOf(got.err) != hardware.Unsupported {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestALiveISOIsUndeployedBeforeAnotherInstall(t *testing.T) {
	on := newTestNode(nodes.Active, workInstall, "")
	on.power = "power on"
	for name, c := range map[string]struct {
		node          node
		wasLive, next bool
		want          action
	}{
		"a live ISO that runs":         {node: on, wasLive: true, want: action{kind: actionPower}},
		"a live ISO that is off":       {node: newTestNode(nodes.Active, workInstall, ""), wasLive: true, want: action{kind: actionRequest, target: nodes.TargetDeleted}},
		"a disk image, then an ISO":    {node: newTestNode(nodes.Active, workInstall, ""), next: true, want: action{kind: actionRequest, target: nodes.TargetDeleted}},
		"a live ISO that failed":       {node: newTestNode(nodes.DeployFail, workInstall, ""), wasLive: true, want: action{kind: actionRequest, target: nodes.TargetDeleted}},
		"a live ISO that is undone":    {node: newTestNode(nodes.Available, workInstall, ""), wasLive: true, want: action{kind: actionPrepare, target: nodes.TargetActive}},
		"a disk image, then a new one": {node: newTestNode(nodes.Active, workInstall, ""), want: action{kind: actionPrepare, target: nodes.TargetRebuild}},
	} {
		c.node.record.isLive, c.node.bootInterface = c.wasLive, "redfish-virtual-media"
		asked := newTestCall(7, workInstall)
		asked.isLive = c.next
		if got := nextAction(c.node, asked); got != c.want {
			t.Errorf("%s: expected %+v, seen %+v", name, c.want, got)
		}
	}
}
