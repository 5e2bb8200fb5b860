package rack_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
)

const (
	draLabel    = "nvidia.com/dra-kubelet-plugin=true"
	pluginLabel = "nvidia.com/gpu.deploy.device-plugin=false"
	draAccount  = "nvidia-dra-driver-gpu-service-account-kubeletplugin"
)

// awaitSlices waits until the slices of the node are as the check wants them.
func (c *tenant) awaitSlices(what, node string, check func([]resourcev1.ResourceSlice) error) []resourcev1.ResourceSlice {
	c.t.Helper()
	var found []resourcev1.ResourceSlice
	eventually(c.t, what, func() error {
		list, err := c.admin.ResourceV1().ResourceSlices().List(c.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return err
		}
		found = list.Items
		return check(found)
	})
	return found
}

// pool wants one complete pool with so many devices of the type.
func pool(kind string, count int) func([]resourcev1.ResourceSlice) error {
	return func(all []resourcev1.ResourceSlice) error {
		seen := 0
		for _, slice := range all {
			if slice.Spec.Driver != "gpu.nvidia.com" || slice.Spec.Pool.Name != *slice.Spec.NodeName || slice.Spec.Pool.ResourceSliceCount != int64(len(all)) {
				return fmt.Errorf("%+v of %d slices", slice.Spec.Pool, len(all))
			}
			for _, device := range slice.Spec.Devices {
				if *device.Attributes["type"].StringValue == kind {
					seen++
				}
			}
		}
		if seen != count {
			return fmt.Errorf("%d devices of type %s in %d slices", seen, kind, len(all))
		}
		return nil
	}
}

// none wants no slice.
func none(all []resourcev1.ResourceSlice) error {
	if len(all) > 0 {
		return fmt.Errorf("%d slices", len(all))
	}
	return nil
}

// claim asks for so many devices of the class that all expressions select, and a pod for the claim; it returns the pod.
func (c *tenant) claim(name, node, class string, count int64, expressions ...string) *corev1.Pod {
	c.t.Helper()
	var selectors []resourcev1.DeviceSelector
	for _, e := range expressions {
		selectors = append(selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	_, err := c.admin.ResourceV1().ResourceClaims(metav1.NamespaceDefault).Create(c.t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count, Selectors: selectors},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod(name, node, name, "")
}

// settles creates the pod and waits until it runs, or until the scheduler has said that it cannot.
func (c *tenant) settles(p *corev1.Pod, runs bool) {
	c.t.Helper()
	if _, err := c.admin.CoreV1().Pods(p.Namespace).Create(c.t.Context(), p, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.awaitPod(p, fmt.Sprintf("runs: %t", runs), func(found *corev1.Pod) bool {
		unschedulable := slices.ContainsFunc(found.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
		})
		return runs && found.Status.Phase == corev1.PodRunning || !runs && unschedulable
	})
}

func (c *tenant) awaitPod(p *corev1.Pod, what string, check func(*corev1.Pod) bool) {
	c.t.Helper()
	eventually(c.t, "pod "+p.Name+" "+what, func() error {
		found, err := c.admin.CoreV1().Pods(p.Namespace).Get(c.t.Context(), p.Name, metav1.GetOptions{})
		if err == nil && !check(found) {
			err = fmt.Errorf("%+v", found.Status)
		}
		return err
	})
}

func TestTheDRADriverPublishesWholeGPUs(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.driver()
	r, s := newServer(t, "hgx-h200")
	const name = "dra-whole"
	r.installs(s, name, c.gpuData(name, c.token("draaaa"), "nvidia-smi -mig 0", "none", draLabel, pluginLabel))
	plugin := c.samplePlugin(name, "")
	first := c.awaitSlices("the GPUs are published", name, pool("gpu", 8))
	node, err := c.node(name)
	if err != nil {
		t.Fatal(err)
	}
	device, owner := first[0].Spec.Devices[0], first[0].OwnerReferences[0]
	memory := device.Capacity["memory"].Value
	if got := device.Attributes; device.Name != "gpu-0" || *got["productName"].StringValue != "NVIDIA H200" || *got["driverVersion"].VersionValue != "580.126.9" ||
		*got["cudaComputeCapability"].VersionValue != "9.0.0" || *got["architecture"].StringValue != "Hopper" || memory.Value() != 143771<<20 || owner.UID != node.UID {
		t.Errorf("%+v, owned by %+v", device, owner)
	}
	c.settles(c.claim("dra-eight", name, "gpu.nvidia.com", 8), true)
	c.settles(c.claim("dra-ninth", name, "gpu.nvidia.com", 1), false)
	c.settles(c.claim("dra-mig", name, "mig.nvidia.com", 1), false)
	eventually(t, "no device plugin is wanted on the node", func() error {
		set, err := c.admin.AppsV1().DaemonSets(plugin.Namespace).Get(t.Context(), plugin.Name, metav1.GetOptions{})
		if err == nil && (set.Status.ObservedGeneration < set.Generation || set.Status.DesiredNumberScheduled != 0) {
			err = fmt.Errorf("%+v", set.Status)
		}
		return err
	})
	if node, err := c.node(name); err != nil || !offers(map[string]int64{})(node) {
		t.Errorf("a device plugin advertises too: %v, %v", node.Status.Capacity, err)
	}

	t.Run("a slice that somebody deletes comes back", func(t *testing.T) {
		if err := c.admin.ResourceV1().ResourceSlices().Delete(t.Context(), first[0].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		newTenant(t).awaitSlices("it is back", name, func(all []resourcev1.ResourceSlice) error {
			if len(all) == 1 && all[0].UID == first[0].UID {
				return errors.New("not deleted yet")
			}
			return pool("gpu", 8)(all)
		})
	})
	t.Run("the next boot publishes what it finds", func(t *testing.T) {
		s.SetFaults(rack.Faults{MissingGPUs: 1})
		s.Reset(bmc.ResetForceRestart)
		newTenant(t).awaitSlices("seven GPUs are published", name, pool("gpu", 7))
	})
	t.Run("an incomplete pool is not allocated from", func(t *testing.T) {
		c := newTenant(t)
		for _, claimed := range []string{"dra-eight", "dra-ninth", "dra-mig"} {
			if err := c.admin.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), claimed, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		s.SetFaults(rack.Faults{IncompletePool: true})
		s.Reset(bmc.ResetForceRestart)
		c.awaitSlices("a slice is announced that is not there", name, func(all []resourcev1.ResourceSlice) error {
			if len(all) != 1 || all[0].Spec.Pool.ResourceSliceCount != 2 {
				return fmt.Errorf("%d slices", len(all))
			}
			return nil
		})
		claimed := c.claim("dra-incomplete", name, "gpu.nvidia.com", 1)
		c.settles(claimed, false)
		s.SetFaults(rack.Faults{})
		s.Reset(bmc.ResetForceRestart)
		c.awaitPod(claimed, "runs once the pool is complete", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	})
	t.Run("slices go with their driver", func(t *testing.T) {
		c := newTenant(t)
		c.awaitSlices("the GPUs are published", name, pool("gpu", 8))
		node, err := c.node(name)
		if err != nil {
			t.Fatal(err)
		}
		delete(node.Labels, strings.TrimSuffix(draLabel, "=true"))
		if _, err := c.admin.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.awaitSlices("the slices are gone", name, none)
		if node, err = c.node(name); err != nil {
			t.Fatal(err)
		}
		node.Labels[strings.TrimSuffix(draLabel, "=true")] = "true"
		if _, err := c.admin.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.awaitSlices("they are back", name, pool("gpu", 8))
	})
	t.Run("slices go with their node", func(t *testing.T) {
		s.PowerLoss()
		c := newTenant(t)
		if err := c.admin.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.awaitSlices("the slices are gone", name, none)
	})
}

func TestTheDRADriverPublishesMIGInstances(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.driver()
	r, s := newServer(t, "hgx-a100")
	const name = "dra-mig"
	r.installs(s, name, c.gpuData(name, c.token("drabbb"), applyLayout, "version: v1\nmig-configs:\n  ingot:\n"+
		"  - {devices: [0, 1, 2], mig-enabled: true, mig-devices: {1g.10gb: 2, 1g.10gb+me: 1, 4g.40gb: 1}}\n"+
		"  - {devices: [3, 4, 5, 6], mig-enabled: false}\n  - {devices: [7], mig-enabled: true, mig-devices: {}}\n", draLabel, pluginLabel))
	found := c.awaitSlices("the instances are published", name, pool("mig", 12))
	if err := pool("gpu", 4)(found); err != nil {
		t.Errorf("GPUs that are not cut: %v", err)
	}
	names, whole := map[string]resourcev1.Device{}, found[0].Spec.Devices
	for _, device := range whole {
		names[device.Name] = device
	}
	// 4g begins at slot 0; the three 1g share what is behind it.
	four, media := names["gpu-1-mig-4g40gb-5-0"], ""
	for name := range names {
		if strings.HasPrefix(name, "gpu-1-mig-1g10gb-me-20-") {
			media = name
		}
	}
	if four.Name == "" || media == "" || *four.Attributes["profile"].StringValue != "4g.40gb" || *names[media].Attributes["profile"].StringValue != "1g.10gb+me" ||
		*four.Attributes["parentUUID"].StringValue != *names[media].Attributes["parentUUID"].StringValue {
		t.Errorf("%+v", whole)
	}
	for slot := range 4 {
		if _, there := four.Capacity[resourcev1.QualifiedName(fmt.Sprint("memorySlice", slot))]; !there {
			t.Errorf("capacity %+v", four.Capacity)
		}
	}
	c.settles(c.claim("dra-parts", name, "mig.nvidia.com", 12), true)
	c.settles(c.claim("dra-wholes", name, "gpu.nvidia.com", 3), true)
	c.settles(pod("dra-by-name", name, "", gpu), true)
	c.settles(pod("dra-no-more", name, "", gpu), false)
}

// TestTheSchedulerHoldsDynamicInstancesToTheirGPU has the real scheduler allocate by the counters that the driver publishes.
func TestTheSchedulerHoldsDynamicInstancesToTheirGPU(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.driver()
	r, s := newServer(t, "hgx-h200")
	const name = "dra-dynamic"
	r.installs(s, name, c.gpuData(name, c.token("draccc"), "nvidia-smi -mig 0", "none", pluginLabel))
	c.sampleDriver(name, "DynamicMIG=true")
	found := c.awaitSlices("each placement is published", name, pool("mig", 8*25))
	if err := pool("gpu", 8)(found); err != nil || len(found) != 9 {
		t.Errorf("%d slices: %v", len(found), err)
	}
	const three, one = "device.attributes['gpu.nvidia.com'].profile == '3g.71gb'", "device.attributes['gpu.nvidia.com'].profile == '1g.18gb'"
	halves := c.claim("dra-halves", name, "mig.nvidia.com", 16, three)
	c.settles(halves, true)
	c.settles(c.claim("dra-third-half", name, "mig.nvidia.com", 1, three), false)
	c.settles(c.claim("dra-no-slot-left", name, "mig.nvidia.com", 1, one), false)
	whole := c.claim("dra-whole-too", name, "gpu.nvidia.com", 1)
	c.settles(whole, false)
	if err := c.admin.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), halves.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.awaitPod(whole, "runs once no instance is in use", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
}

func TestADriverWritesItsOwnNodesSlicesOnly(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.driver()
	token, err := c.admin.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), draAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stolen := kubernetes.NewForConfigOrDie(&rest.Config{Host: c.cluster.Endpoint(), BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: c.cluster.CA()}})
	node := "dra-elsewhere"
	eventually(t, "the policy is in force", func() error {
		slice, err := stolen.ResourceV1().ResourceSlices().Create(t.Context(), &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{GenerateName: node}, Spec: resourcev1.ResourceSliceSpec{
				Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			},
		}, metav1.CreateOptions{})
		if err == nil {
			err = c.admin.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{})
			return errors.Join(errors.New("a slice of another node was written, and taken away"), err)
		}
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the token names no node") {
			return err
		}
		return nil
	})
}
