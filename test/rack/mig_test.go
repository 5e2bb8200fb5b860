package rack_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack"
)

func TestHopperIsCutAtEveryBoot(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r, s := newServer(t, "hgx-h100")
	const name = "mig-hopper"
	r.installs(s, name, c.gpuData(name, c.token("migaaa"), applyLayout, layout("1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1")))
	c.samplePlugin(name, "")
	cut := map[string]int64{"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-2g.20gb": 8, "nvidia.com/mig-3g.40gb": 8}
	c.awaitNode("the instances are advertised", name, offers(cut))
	c.reboots(s, name, rack.Faults{}, cut)
	c.reboots(s, name, rack.Faults{ChangeProfile: rack.ProfileChange{From: "2g.20gb", To: "1g.20gb"}},
		map[string]int64{"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-1g.20gb": 8, "nvidia.com/mig-3g.40gb": 8})
	c.reboots(s, name, rack.Faults{MissingGPUs: 2}, map[string]int64{"nvidia.com/mig-1g.10gb": 12, "nvidia.com/mig-2g.20gb": 6, "nvidia.com/mig-3g.40gb": 6})
	// Without its driver Hopper forgets that it was ever in MIG mode.
	c.reboots(s, name, rack.Faults{RemoveUnit: "gpu-mode.service"}, map[string]int64{gpu: 8})
}

func TestAmpereIsLeftInMIGMode(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r, s := newServer(t, "hgx-a100")
	r.installs(s, "ampere-1", c.gpuData("mig-ampere-1", c.token("migbbb"), applyLayout, layout("1g.10gb: 7")))
	c.samplePlugin("mig-ampere-1", "single")
	c.awaitNode("every instance is a GPU", "mig-ampere-1", offers(map[string]int64{gpu: 56}))

	s.PowerLoss()
	awaitPower(t, s, hardware.PowerOff)
	r.installs(s, "ampere-2", c.userData("mig-ampere-2", c.token("migccc")))
	c.awaitNode("the next image's node is ready", "mig-ampere-2", ready)
	c.samplePlugin("mig-ampere-2", "single")
	eventually(t, "the plugin says what it misses", func() error {
		pods, err := c.admin.CoreV1().Pods(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=mig-ampere-2"})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, status := range pod.Status.ContainerStatuses {
				if waiting := status.State.Waiting; waiting != nil && strings.Contains(waiting.Message, "device 0 has no MIG devices configured") {
					return nil
				}
			}
		}
		return fmt.Errorf("%d pods", len(pods.Items))
	})
	node, err := c.node("mig-ampere-2")
	if err != nil || !offers(map[string]int64{})(node) {
		t.Errorf("GPUs in MIG mode without instances: %v, %v", node.Status.Capacity, err)
	}

	r.installs(s, "ampere-3", c.gpuData("mig-ampere-3", c.token("migddd"), "nvidia-smi -mig 0", "none"))
	c.samplePlugin("mig-ampere-3", "")
	c.awaitNode("the GPUs are whole", "mig-ampere-3", offers(map[string]int64{gpu: 8}))
	if err := s.SetMIGMode(true); err != nil {
		t.Fatal(err)
	}
	c.reboots(s, "mig-ampere-3", rack.Faults{RemoveUnit: "gpu-mode.service"}, map[string]int64{})
}

func TestALayoutThatCannotBeKeepsKubeletDown(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r, s := newServer(t, "hgx-h200")
	const name = "mig-wrong"
	r.installs(s, name, c.gpuData(name, c.token("migeee"), applyLayout, layout("3g.71gb: 2, 1g.18gb: 1")))
	stays := func(why string) {
		t.Helper()
		eventually(t, "kubelet stays down", func() error {
			if state := s.State(); !strings.Contains(state.Activity, "kubelet was not started") || !strings.Contains(state.Activity, why) {
				return fmt.Errorf("%+v", state)
			}
			return nil
		})
		if _, err := c.node(name); !apierrors.IsNotFound(err) {
			t.Errorf("there is a node: %v", err)
		}
	}
	stays("insufficient resources")
	// The same disk in a server whose GPUs something holds.
	s.SetFaults(rack.Faults{GPUsInUse: true})
	s.PowerLoss()
	awaitPower(t, s, hardware.PowerOff)
	if err := r.bmc(s).SetPower(t.Context(), hardware.TurnOn); err != nil {
		t.Fatal(err)
	}
	stays("in use by another client")
}

func TestAGPUThatReportsErrorsIsNotAllocatable(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r, s := newServer(t, "hgx-h200")
	const name = "mig-ill"
	s.SetFaults(rack.Faults{UnhealthyGPUs: 1})
	r.installs(s, name, c.gpuData(name, c.token("migfff"), applyLayout, layout("1g.18gb: 7")))
	c.samplePlugin(name, "")
	c.awaitNode("seven of eight GPUs are well", name, func(node *corev1.Node) bool {
		capacity, allocatable := node.Status.Capacity["nvidia.com/mig-1g.18gb"], node.Status.Allocatable["nvidia.com/mig-1g.18gb"]
		return capacity.Value() == 56 && allocatable.Value() == 49
	})
}
