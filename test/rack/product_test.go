package rack_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/containerd"
	kubeletfiles "github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// request is what a NodeType asks for on the rack's image.
func request(model string, how v1alpha1.Presentation) spec.Request {
	return spec.Request{
		GPU: &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: model, Count: 8, Driver: v1alpha1.GPUDriver{Source: v1alpha1.DriverFromImage}, Presentation: how},
		Image: v1alpha1.OSImageSpec{
			OS: v1alpha1.OSImageOS{ID: "debian", Version: "13", Kernel: "6.12.107"}, KernelArguments: []string{"modprobe.blacklist=nouveau"},
			Software: v1alpha1.OSImageSoftware{
				Kubelet: "1.37.0", ContainerToolkit: "1.18.0", Containerd: "2.2.0", MIGParted: "0.15.0",
				GPUDriver: &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "580.126.09", KernelModule: "Open"},
			},
		},
	}
}

// severalTenants returns the request for nodes on which pods of several tenants run.
func severalTenants(r spec.Request) spec.Request {
	r.GPU.Tenancy = v1alpha1.TenancyShared
	return r
}

// reports returns a check of what the node's own unit reports of containerd, behind the boot.
func reports(want string) func(*corev1.Node) bool {
	return func(n *corev1.Node) bool {
		return n.Annotations[v1alpha1.AnnotationContainerd] == n.Status.NodeInfo.BootID+" "+want
	}
}

// matching counts the published devices that are as expected.
func matching(want v1alpha1.ExpectedDevices, all []resourcev1.ResourceSlice) int {
	count := 0
	for _, slice := range all {
		for _, device := range slice.Spec.Devices {
			text := func(name string) string {
				attribute := device.Attributes[resourcev1.QualifiedName(name)]
				for _, value := range []*string{attribute.StringValue, attribute.VersionValue} {
					if value != nil {
						return *value
					}
				}
				return ""
			}
			fits := text("type") == want.Type && (len(want.Profiles) == 0 || slices.Contains(want.Profiles, text("profile")))
			for name, accepted := range want.Attributes {
				fits = fits && slices.Contains(accepted, text(name))
			}
			if fits {
				count++
			}
		}
	}
	return count
}

// ownPlugin stands for the device plugin that follows from the NodeType, in place of the sample with a strategy.
const ownPlugin = "own"

// apply applies what the tenant's software is told for the NodeType, and no other has.
func (c *tenant) apply(nodeType software.NodeType) {
	c.t.Helper()
	config, err := c.cluster.RESTConfig()
	if err != nil {
		c.t.Fatal(err)
	}
	tenant, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := tenantsoftware.Objects([]software.NodeType{nodeType})
	if err != nil || len(all) == 0 {
		c.t.Fatalf("%d objects: %v", len(all), err)
	}
	for _, object := range all {
		if err := tenant.Create(c.t.Context(), object); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestWhatTheProductPlansIsWhatItsNodesOffer is the one place where the product's plans meet the rack, which never saw them.
func TestWhatTheProductPlansIsWhatItsNodesOffer(t *testing.T) {
	t.Parallel()
	mig := func(strategy string, advertise v1alpha1.Advertiser, layout ...v1alpha1.MIGLayout) v1alpha1.Presentation {
		return v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: strategy, Advertise: advertise, Layout: layout}}
	}
	for name, test := range map[string]struct {
		profile  string
		request  spec.Request
		strategy string
	}{
		"mixed": {"hgx-h100", request("H100-SXM5-80GB", mig("mixed", v1alpha1.AdvertiseDevicePlugin, v1alpha1.MIGLayout{
			GPUs: []int32{0, 1, 2}, Profiles: map[string]int32{"1g.10gb": 2, "1g.10gb+me": 1, "4g.40gb": 1},
		}, v1alpha1.MIGLayout{GPUs: []int32{7}, Profiles: map[string]int32{"2g.20gb": 3}})), "mixed"},
		"single": {"hgx-a100", request("A100-SXM4-80GB", mig("single", v1alpha1.AdvertiseDevicePlugin, v1alpha1.MIGLayout{Profiles: map[string]int32{"3g.40gb": 2}})), "single"},
		"shared": {"hgx-h100", severalTenants(request("H100-SXM5-80GB", v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough, Passthrough: &v1alpha1.PassthroughSpec{
			Sharing: &v1alpha1.SharingSpec{Strategy: "TimeSlicing", Replicas: 4},
		}})), ownPlugin},
		"none":   {"hgx-a100", request("A100-SXM4-80GB", mig("none", v1alpha1.AdvertiseDevicePlugin)), "mixed"},
		"claims": {"hgx-h200", request("H200-SXM-141GB", v1alpha1.Presentation{Mode: v1alpha1.ModeDRA}), "mixed"},
		"parts":  {"hgx-h200", request("H200-SXM-141GB", mig("mixed", v1alpha1.AdvertiseDRA, v1alpha1.MIGLayout{GPUs: []int32{1, 2}, Profiles: map[string]int32{"1g.18gb": 1, "3g.71gb": 1, "2g.35gb": 1}})), "mixed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			c.driver()
			planned, err := presentation.Resolve(test.request)
			if err != nil {
				t.Fatal(err)
			}
			node := "product-" + name
			rendered, err := cloudinit.Render(cloudinit.Input{
				Machine: cloudinit.MachineInput{Name: node, UID: node, Revision: "r1", Attempt: 1}, Gate: gate, Plan: planned,
				Containerd: containerd.NodeOf(test.request.Image.Software, test.request.GPU, nil),
				Node:       cloudinit.NodeInput{Labels: map[string]string{v1alpha1.LabelNodeType: node}},
				Join:       &kubeletfiles.Join{Endpoint: c.cluster.Endpoint(), CA: c.cluster.CA(), Token: c.token((name + "00000")[:6])},
			})
			if err != nil {
				t.Fatal(err)
			}
			r, s := newServer(t, test.profile)
			if err := s.SetMIGMode(true); err != nil { // as the last tenant left it
				t.Fatal(err)
			}
			if status := r.install(s, hardware.ConfigDrive(rendered)); status.State != hardware.AttemptSucceeded {
				t.Fatalf("%+v", status)
			}
			if test.strategy == ownPlugin {
				c.apply(software.NodeType{Name: node, GPU: test.request.GPU, Image: test.request.Image, Plan: planned, Gate: corev1.Taint{Key: gate}})
			} else {
				c.samplePlugin(node, test.strategy)
			}
			want := map[string]int64{}
			for _, resource := range planned.Expectation.Resources {
				want[string(resource.Name)] = resource.Quantity.Value()
			}
			c.awaitNode(fmt.Sprintf("%v are offered", want), node, offers(want))
			if planned.Expectation.ContainerdReport {
				c.awaitNode("the node reports its container runtime", node, reports(v1alpha1.ContainerdOK))
			}
			c.awaitSlices("the slices are as planned", node, func(all []resourcev1.ResourceSlice) error {
				if len(all) > 0 != (len(planned.Expectation.Slices) > 0) {
					return fmt.Errorf("%d slices", len(all))
				}
				var errs []error
				for _, expected := range planned.Expectation.Slices {
					for _, device := range expected.Devices {
						if got := matching(device, all); got != device.Count {
							errs = append(errs, fmt.Errorf("%d of %+v", got, device))
						}
					}
				}
				return errors.Join(errs...)
			})
		})
	}
}
