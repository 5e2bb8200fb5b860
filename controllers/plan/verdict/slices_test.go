package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	draDriver = "gpu.nvidia.com"
	draClass  = "gpu.nvidia.com"
	// The selector of the NVIDIA driver's chart.
	draSelector = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
)

// perfectDRA is a gated node whose driver publishes eight GPUs, as promised, in one slice.
func perfectDRAInput() Input {
	in := perfectInput()
	delete(in.Node.Status.Capacity, gpu)
	delete(in.Node.Status.Allocatable, gpu)
	in.Expectation.Resources = nil
	in.Expectation.Slices = []v1alpha1.ExpectedSlices{{
		Driver: draDriver, Hint: "look at the driver's pod",
		DeviceClasses: []v1alpha1.ExpectedDeviceClass{{Name: draClass, Count: 8}},
		Devices: []v1alpha1.ExpectedDevices{{Type: "gpu", Count: 8, Optional: []string{"addressingMode"}, Attributes: map[string][]string{
			"productName": {"NVIDIA H100 80GB HBM3", "NVIDIA H100"}, "driverVersion": {"550.163.01"}, "addressingMode": {"HMM"}}}},
	}}
	in.SlicesServed = true
	in.Slices = []resourcev1.ResourceSlice{slice("s-0", 3, 1, 0, 8)}
	in.DeviceClasses = map[string]DeviceClass{draClass: {Selectors: Compile(class(draSelector))}}
	return in
}

// slice has the GPUs from first to last, one before it.
func slice(name string, generation, of int64, first, last int) resourcev1.ResourceSlice {
	s := resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "n", UID: "node-1"}}},
		Spec: resourcev1.ResourceSliceSpec{Driver: draDriver, NodeName: ptr.To("n"),
			Pool: resourcev1.ResourcePool{Name: "n", Generation: generation, ResourceSliceCount: of}},
	}
	for i := first; i < last; i++ {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i),
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("81559Mi")}},
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": {StringValue: ptr.To("gpu")}, "productName": {StringValue: ptr.To("NVIDIA H100 80GB HBM3")},
				"driverVersion": {VersionValue: ptr.To("550.163.1")}, "uuid": {StringValue: ptr.To(fmt.Sprintf("GPU-%d", i))}}})
	}
	return s
}

func class(expressions ...string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: draClass}}
	for _, e := range expressions {
		c.Spec.Selectors = append(c.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	return c
}

func selectBy(in *Input, expressions ...string) {
	in.DeviceClasses = map[string]DeviceClass{draClass: {Selectors: Compile(class(expressions...))}}
}

func attribute(in *Input, gpu int, name, value string) {
	in.Slices[0].Spec.Devices[gpu].Attributes[resourcev1.QualifiedName(name)] = resourcev1.DeviceAttribute{StringValue: &value}
}

func devicesOf(in *Input, first, last int) {
	in.Slices[0].Spec.Devices = slice("", 0, 0, first, last).Spec.Devices
}

func TestEveryCheckOfSlices(t *testing.T) {
	const pool, gpus, claims = "slices/gpu.nvidia.com", "slices/gpu.nvidia.com/gpu", "deviceclass/gpu.nvidia.com"
	wait, fail := v1alpha1.CheckWait, v1alpha1.CheckFail
	tests := []struct {
		sentence string
		change   func(*Input)
		name     string
		result   v1alpha1.CheckResult
		observed string
	}{
		{"a driver that publishes nothing is waited for", func(in *Input) { in.Slices = nil }, pool, wait, ""},
		{"a slice that is missing is waited for", func(in *Input) { in.Slices = []resourcev1.ResourceSlice{slice("a", 1, 2, 0, 8)} }, pool, wait, "pool n has 1 of 2 slices of generation 1"},
		{"devices of a pool that is not complete do not count", func(in *Input) { in.Slices = []resourcev1.ResourceSlice{slice("a", 1, 2, 0, 8)} }, gpus, wait, "0"},
		{"the newest generation must be complete, whatever an older one was", func(in *Input) { in.Slices = append(in.Slices, slice("b", 4, 2, 0, 4)) }, pool, wait, "pool n has 1 of 2 slices of generation 4"},
		{"slices that disagree about their number are waited for", func(in *Input) { in.Slices = append(in.Slices, slice("b", 3, 2, 8, 9)) }, pool, wait,
			"pool n: slices of generation 3 disagree whether they are 2 or 1"},
		{"more slices than the pool has are waited for", func(in *Input) {
			in.Slices = []resourcev1.ResourceSlice{slice("a", 1, 1, 0, 8), slice("b", 1, 1, 8, 9)}
		}, pool, wait, "pool n has 2 of 1 slices of generation 1"},
		{"slices of an earlier Node object are waited for", func(in *Input) { in.Node.UID = "node-2" }, pool, wait, "pool n has 1 slices of an earlier Node object"},
		{"a device that is there twice does not count", func(in *Input) { in.Slices[0].Spec.Devices[1].Name = "gpu-0" }, pool, wait, "pool n has two devices gpu-0"},
		{"a missing device waits", func(in *Input) { devicesOf(in, 0, 7) }, gpus, wait, "7"},
		{"a missing device fails after the deadline", func(in *Input) { devicesOf(in, 0, 7); in.Deadline = start }, gpus, fail, "7"},
		{"more devices than promised fail at once", func(in *Input) { devicesOf(in, 0, 9) }, gpus, fail, "9"},
		{"another product fails at once", func(in *Input) { attribute(in, 3, "productName", "NVIDIA H200") }, gpus + "/productName", fail, "gpu-3: NVIDIA H200"},
		{"another product on several devices names the first", func(in *Input) { attribute(in, 3, "productName", "X"); attribute(in, 5, "productName", "X") }, gpus + "/productName", fail, "gpu-3: X, and 1 more devices"},
		{"an attribute that is missing waits", func(in *Input) { delete(in.Slices[0].Spec.Devices[0].Attributes, "driverVersion") }, gpus + "/driverVersion", wait, "gpu-0: no value"},
		{"an optional attribute that is wrong fails", func(in *Input) { attribute(in, 0, "addressingMode", "ATS") }, gpus + "/addressingMode", fail, "gpu-0: ATS"},
		{"an attribute of the driver's full name is the same", func(in *Input) { attribute(in, 0, "gpu.nvidia.com/addressingMode", "ATS") }, gpus + "/addressingMode", fail, "gpu-0: ATS"},
		{"a device of another type is foreign", func(in *Input) { attribute(in, 7, "type", "mig"); attribute(in, 7, "profile", "1g.10gb") }, "foreign/gpu.nvidia.com", fail,
			"1 more devices, the first of type mig and profile 1g.10gb: gpu-7"},
		{"a tainted device waits", func(in *Input) {
			in.Slices[0].Spec.Devices[2].Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}, pool + "/taints", wait, "gpu-2: gpu.nvidia.com/xid=79:NoSchedule"},
		{"a device plugin beside the driver fails", func(in *Input) { in.Node.Status.Capacity[gpu] = resource.MustParse("8") }, "foreign/nvidia.com/gpu", fail, "8"},
		{"a class that does not exist is waited for", func(in *Input) { in.DeviceClasses = map[string]DeviceClass{draClass: {Missing: true}} }, claims, wait, "it does not exist"},
		{"a class that cannot be read is waited for", func(in *Input) { in.DeviceClasses = map[string]DeviceClass{draClass: {ReadError: "forbidden"}} }, claims, wait, "forbidden"},
		{"a class that was not read is waited for", func(in *Input) { in.DeviceClasses = nil }, claims, wait, "it has not been read"},
		{"a class that selects too few is waited for", func(in *Input) { selectBy(in, "device.attributes['gpu.nvidia.com'].uuid == 'GPU-3'") }, claims, wait, "1"},
		{"all selectors of a class must hold", func(in *Input) { selectBy(in, draSelector, "device.driver == 'other'") }, claims, wait, "0"},
		{"a class that selects more fails", func(in *Input) {
			other := slice("other", 1, 1, 0, 1)
			other.Spec.Driver = "other.example.com"
			in.Slices = append(in.Slices, other)
			selectBy(in, "true")
		}, claims, fail, "9"},
		{"a class that does not compile fails", func(in *Input) { selectBy(in, "device.nonsense(") }, claims, fail, "*"},
		{"a class that fails on a device fails", func(in *Input) { selectBy(in, "device.attributes['gpu.nvidia.com'].wings == 2") }, claims, fail, "*"},
		{"a class whose selector is of an unknown kind fails", func(in *Input) {
			c := class()
			c.Spec.Selectors = []resourcev1.DeviceSelector{{}}
			in.DeviceClasses = map[string]DeviceClass{draClass: {Selectors: Compile(c)}}
		}, claims, fail, "selector 0 has no CEL expression"},
		{"a tenant without the API fails", func(in *Input) { in.SlicesServed, in.Slices = false, nil }, pool, fail, "it does not"},
		{"a tenant without the API fails, Ready or not", func(in *Input) { in.SlicesServed = false; notReady(in) }, pool, fail, "it does not"},
		{"more devices than promised only wait while the node is not Ready", func(in *Input) { devicesOf(in, 0, 9); notReady(in) }, gpus, wait, "9"},
		{"a driver beside the device plugin fails", func(in *Input) { in.Expectation.Slices, in.Expectation.AbsentDrivers = nil, []string{draDriver} }, "foreign/gpu.nvidia.com", fail, "8 devices"},
		{"what a driver published for an earlier Node object is waited for", func(in *Input) {
			in.Expectation.Slices, in.Expectation.AbsentDrivers, in.Node.UID = nil, []string{draDriver}, "node-2"
		}, "foreign/gpu.nvidia.com", wait, "1 slices of an earlier Node object"},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			in := perfectDRAInput()
			tt.change(&in)
			d := Judge(in)
			c := find(t, d, tt.name)
			if c.Result != tt.result || tt.observed != "*" && c.Observed != tt.observed {
				t.Errorf("%s is %s with observed %q, want %s with %q", tt.name, c.Result, c.Observed, tt.result, tt.observed)
			}
			if c.Hint == "" || d.Verdict.Result == v1alpha1.CheckPass {
				t.Errorf("hint %q, verdict %s", c.Hint, d.Verdict.Result)
			}
		})
	}
}

func TestSlicesPassWithinTheirRules(t *testing.T) {
	for sentence, change := range map[string]func(*Input){
		"everything as promised": func(*Input) {},
		"devices in several slices": func(in *Input) {
			in.Slices = []resourcev1.ResourceSlice{slice("b", 1, 2, 3, 8), slice("a", 1, 2, 0, 3)}
		},
		"an older generation beside it": func(in *Input) { in.Slices = append(in.Slices, slice("old", 2, 5, 0, 2)) },
		"slices that no Node owns":      func(in *Input) { in.Slices[0].OwnerReferences = nil },
		"a taint that only informs": func(in *Input) {
			in.Slices[0].Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "k", Effect: "None"}}
		},
		"another node's slices": func(in *Input) {
			s := slice("x", 9, 1, 0, 3)
			s.Spec.NodeName, s.Spec.Pool.Name = ptr.To("m"), "m"
			in.Slices = append(in.Slices, s)
		},
		"a slice that only its pool names": func(in *Input) { in.Slices[0].Spec.NodeName = nil },
		"another vendor's driver": func(in *Input) {
			s := slice("x", 9, 4, 0, 3)
			s.Spec.Driver = "net.example.com"
			in.Slices = append(in.Slices, s)
		},
		"the residue of a device plugin": func(in *Input) { in.Node.Status.Capacity[gpu] = resource.MustParse("0") },
		"an absent driver that publishes no device": func(in *Input) {
			s := slice("x", 1, 1, 0, 0)
			s.Spec.Driver = "gpu.example.com"
			in.Slices, in.Expectation.AbsentDrivers = append(in.Slices, s), []string{"gpu.example.com"}
		},
		"no API where nothing is promised by it": func(in *Input) {
			in.SlicesServed, in.Slices, in.Expectation.Slices, in.Expectation.AbsentDrivers = false, nil, nil, []string{draDriver}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := perfectDRAInput()
			change(&in)
			if d := Judge(in); d.Verdict.Result != v1alpha1.CheckPass {
				t.Errorf("the verdict is %s: %s", d.Verdict.Result, d.Message)
			}
		})
	}
}

func TestTheReasonsOfSlices(t *testing.T) {
	for reason, change := range map[string]func(*Input){
		v1alpha1.ReasonResourcesMissing:   func(in *Input) { in.Slices = nil },
		v1alpha1.ReasonChecksFailed:       func(in *Input) { devicesOf(in, 0, 9) },
		v1alpha1.ReasonChecksWaiting:      func(in *Input) { in.DeviceClasses = nil },
		v1alpha1.ReasonValidationTimedOut: func(in *Input) { in.Slices = nil; in.Deadline = start },
		v1alpha1.ReasonDRANotServed:       func(in *Input) { in.SlicesServed = false; in.Deadline = start },
	} {
		in := perfectDRAInput()
		change(&in)
		if d := Judge(in); d.Reason != reason {
			t.Errorf("reason %s, want %s: %s", d.Reason, reason, d.Message)
		}
	}
	in := perfectDRAInput()
	in.SlicesServed = false
	if d := Judge(in); !strings.Contains(d.Message, "1.34 or newer") {
		t.Errorf("the message does not say what the tenant must do: %s", d.Message)
	}
}

func TestTwoChecksOfOneNameAreToldApart(t *testing.T) {
	in := perfectDRAInput()
	e := in.Expectation.Slices[0].Devices[0]
	in.Expectation.Slices[0].Devices = []v1alpha1.ExpectedDevices{e, e}
	d := Judge(in)
	names := map[string]bool{}
	for _, c := range d.Verdict.Checks {
		if names[c.Name] {
			t.Errorf("two checks are named %s", c.Name)
		}
		names[c.Name] = true
	}
	if !names["slices/gpu.nvidia.com/gpu#2"] {
		t.Errorf("checks %v", d.Verdict.Checks)
	}
}

func TestAMIGProfileIsPartOfTheCheck(t *testing.T) {
	in := perfectDRAInput()
	in.DeviceClasses, in.Expectation.Slices[0].DeviceClasses = nil, nil
	in.Expectation.Slices[0].Devices = []v1alpha1.ExpectedDevices{{Type: "mig", Profiles: []string{"1g.10gb", "1g.12gb"}, Count: 7}, {Type: "gpu", Count: 1}}
	for i := range 7 {
		attribute(&in, i, "type", "mig")
		attribute(&in, i, "profile", []string{"1g.10gb", "1g.12gb"}[i%2])
	}
	if d := Judge(in); d.Verdict.Result != v1alpha1.CheckPass {
		t.Fatalf("the verdict is %s: %s", d.Verdict.Result, d.Message)
	}
	attribute(&in, 3, "profile", "2g.20gb")
	d := Judge(in)
	if c := find(t, d, "slices/gpu.nvidia.com/mig/1g.10gb"); c.Result != v1alpha1.CheckWait || c.Observed != "6" {
		t.Errorf("%+v", c)
	}
	if c := find(t, d, "foreign/gpu.nvidia.com"); c.Result != v1alpha1.CheckFail {
		t.Errorf("%+v", c)
	}
}

func daemonSet(name, image string, tolerates bool) appsv1.DaemonSet {
	s := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
	s.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	if tolerates {
		s.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	return s
}

func TestTheHintsNameTheDaemonSets(t *testing.T) {
	dra := daemonSet("nvidia-dra-driver-gpu-kubelet-plugin", "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.0", true)
	plugin := daemonSet("plugin", "nvcr.io/nvidia/k8s-device-plugin:v0.17.4", true)
	other := []appsv1.DaemonSet{daemonSet("nvidia-hydra", "nvidia/hydra", true), daemonSet("amd-device-plugin", "rocm/k8s-device-plugin", true)}
	elsewhere := daemonSet("nvidia-dra-elsewhere", "nvidia/dra", true)
	elsewhere.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "cpu"}
	blocked := daemonSet("nvidia-dra-driver", "nvidia/dra", false)
	tests := []struct {
		sentence, check, says string
		sets                  []appsv1.DaemonSet
		change                func(*Input)
	}{
		{"the device plugin that must go", "foreign/nvidia.com/gpu", "(DaemonSet kube-system/plugin)", append(other, dra, plugin),
			func(in *Input) { in.Node.Status.Capacity[gpu] = resource.MustParse("8") }},
		{"the driver that must go", "foreign/gpu.nvidia.com", "(DaemonSet kube-system/nvidia-dra-driver-gpu-kubelet-plugin)", append(other, dra, plugin, elsewhere),
			func(in *Input) { in.Expectation.Slices, in.Expectation.AbsentDrivers = nil, []string{draDriver} }},
		{"a driver that the gate keeps off", "slices/gpu.nvidia.com", "do not tolerate the gate ingot.dev/unvalidated, so that they cannot run: kube-system/nvidia-dra-driver:", []appsv1.DaemonSet{blocked, plugin},
			func(in *Input) { in.Slices = nil }},
		{"a driver that is not there", "slices/gpu.nvidia.com", "no DaemonSet that fits this node looks like a DRA driver of nvidia", append(other, plugin, elsewhere),
			func(in *Input) { in.Slices = nil }},
		{"a driver that is there and publishes nothing", "slices/gpu.nvidia.com", "look at the driver's pod", append(other, dra),
			func(in *Input) { in.Slices = nil }},
		{"a driver that publishes runs, whatever else the gate keeps off", "slices/gpu.nvidia.com/gpu", "look at the driver's pod", []appsv1.DaemonSet{dra, blocked},
			func(in *Input) { devicesOf(in, 0, 7) }},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			in := perfectDRAInput()
			in.DaemonSets = tt.sets
			tt.change(&in)
			if hint := find(t, Judge(in), tt.check).Hint; !strings.Contains(hint, tt.says) {
				t.Errorf("hint %q does not say %q", hint, tt.says)
			}
		})
	}
}

func TestAnAdmittedNodeNeedsNoDeviceClasses(t *testing.T) {
	in := perfectDRAInput()
	if !NeedsDeviceClasses(in) {
		t.Error("a node that is not admitted needs them")
	}
	in.Previous = previous("Pass", DefaultSettle, true)
	if !NeedsDeviceClasses(in) {
		t.Error("a verdict that has no such check does not stand in for one")
	}
	in.Previous.Checks = Judge(perfectDRAInput()).Verdict.Checks
	in.Previous.Admitted = false
	if !NeedsDeviceClasses(in) {
		t.Error("a node that passes and is about to be admitted needs them")
	}
	in.Previous.Admitted = true
	ungate(&in)
	in.DeviceClasses = nil
	if NeedsDeviceClasses(in) {
		t.Error("an admitted node needs none")
	}
	d := Judge(in)
	if !d.Verdict.Admitted || d.Gate != KeepGate {
		t.Errorf("%s, gate %s", d.Message, d.Gate)
	}
	if diff := cmp.Diff(in.Previous.Checks, d.Verdict.Checks); diff != "" {
		t.Error(diff)
	}
	for sentence, change := range map[string]func(*Input){
		"another boot": func(in *Input) { in.Node.Status.NodeInfo.BootID = "boot-2" }, "another Node": func(in *Input) { in.Node.UID = "node-2" },
		"another revision": func(in *Input) { in.Identity.Revision = "b" },
	} {
		changed := in
		changed.Node = in.Node.DeepCopy()
		change(&changed)
		if !NeedsDeviceClasses(changed) {
			t.Errorf("%s needs them anew", sentence)
		}
	}
	in.Expectation = v1alpha1.NodeExpectation{}
	if NeedsDeviceClasses(in) {
		t.Error("a node without DRA needs none")
	}
}

func TestASliceThatChangesGatesAnAdmittedNode(t *testing.T) {
	in := perfectDRAInput()
	in.Previous = previous("Pass", DefaultSettle, true)
	in.Previous.Checks = Judge(perfectDRAInput()).Verdict.Checks
	ungate(&in)
	in.DeviceClasses = nil
	devicesOf(&in, 0, 7)
	if d := Judge(in); d.Gate != PlaceGate || d.Reason != v1alpha1.ReasonResourcesMissing {
		t.Errorf("gate %s: %s %s", d.Gate, d.Reason, d.Message)
	}
}

func TestTheOrderOfSlicesChangesNothing(t *testing.T) {
	in := perfectDRAInput()
	in.Slices = []resourcev1.ResourceSlice{slice("a", 2, 3, 0, 3), slice("b", 2, 3, 3, 6), slice("c", 1, 3, 6, 9), slice("d", 2, 9, 1, 4), slice("e", 1, 1, 1, 1)}
	first := Judge(in)
	for range 20 {
		slices.Reverse(in.Slices)
		in.Slices = append(in.Slices[1:], in.Slices[0])
		if diff := cmp.Diff(first, Judge(in)); diff != "" {
			t.Fatal(diff)
		}
	}
}
