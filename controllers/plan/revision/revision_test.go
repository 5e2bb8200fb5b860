package revision

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func inputs() Inputs {
	return Inputs{
		NodeType: &v1alpha1.NodeType{
			ObjectMeta: metav1.ObjectMeta{Name: "h100-mig"},
			Spec: v1alpha1.NodeTypeSpec{
				SSHKeys: []string{"ssh-ed25519 AAAA ops"}, UserData: "#cloud-config\npackages: [lldpd]\n",
				GPU: &v1alpha1.GPUSpec{
					Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8, Driver: v1alpha1.GPUDriver{Source: v1alpha1.DriverFromImage},
					Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{
						Strategy: "mixed", Advertise: v1alpha1.AdvertiseDevicePlugin,
						Layout: []v1alpha1.MIGLayout{{GPUs: []int32{0, 1}, Profiles: map[string]int32{"1g.10gb": 7}}},
					}},
				},
			},
		},
		Provider: &v1alpha1.NodeProvider{Spec: v1alpha1.NodeProviderSpec{
			Network: &v1alpha1.NetworkSpec{CIDR: "10.20.4.1/22", DNSServers: []string{"10.20.0.1"}}, SSHKeys: []string{"ssh-ed25519 BBBB hall"},
		}},
		Image: &v1alpha1.OSImage{
			ObjectMeta: metav1.ObjectMeta{Name: "debian-13"},
			Spec:       v1alpha1.OSImageSpec{Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit},
			Status:     v1alpha1.OSImageStatus{Checksum: "sha256:" + strings.Repeat("9b", 32)},
		},
	}
}

func digestOf(t *testing.T, in Inputs) string {
	t.Helper()
	spec, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := Digest(spec)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// golden is what version 1 of the encoding gives. It never changes: every fleet out there would roll.
const golden = "73944f7a7b6c9efe60fb91bd3d3761383f7c3a0355d034850fb2fb7ef6ec17ea"

func TestTheDigestNeverChanges(t *testing.T) {
	if digest := digestOf(t, inputs()); digest != golden {
		t.Errorf("digest %s, want %s: an upgrade would roll every node; add fields so that their default leaves no trace", digest, golden)
	}
}

func TestTheDigestSeesWhatShapesANodeAndNothingElse(t *testing.T) {
	for name, change := range map[string]func(*Inputs){
		"the image's digest":    func(in *Inputs) { in.Image.Status.Checksum = "sha256:" + strings.Repeat("00", 32) },
		"the image's format":    func(in *Inputs) { in.Image.Spec.Format = v1alpha1.FormatRaw },
		"the kind of user data": func(in *Inputs) { in.Image.Spec.UserData = v1alpha1.UserDataIgnition },
		"no GPUs":               func(in *Inputs) { in.NodeType.Spec.GPU = nil },
		"the driver's source":   func(in *Inputs) { in.NodeType.Spec.GPU.Driver.Source = v1alpha1.DriverFromOperator },
		"the driver's version":  func(in *Inputs) { in.NodeType.Spec.GPU.Driver.Version = "580.126.09" },
		"the driver's packages": func(in *Inputs) { in.NodeType.Spec.GPU.Driver.Packages = []string{"nvidia-driver=580.126.09-1"} },
		"who runs IMEX":         func(in *Inputs) { in.NodeType.Spec.GPU.IMEX = "Host" },
		"whose pods run":        func(in *Inputs) { in.NodeType.Spec.GPU.Tenancy = v1alpha1.TenancyShared },
		"an accelerator's modules": func(in *Inputs) {
			in.NodeType.Spec.GPU.Generic = &v1alpha1.GenericSpec{Modules: []string{"habanalabs"}}
		},
		"a claimed layout": func(in *Inputs) {
			in.NodeType.Spec.GPU.Presentation.DRA = &v1alpha1.DRASpec{Layout: []v1alpha1.MIGLayout{{Profiles: map[string]int32{"1g.10gb": 7}}}}
		},
		"a feature gate": func(in *Inputs) {
			in.NodeType.Spec.GPU.Presentation.DRA = &v1alpha1.DRASpec{FeatureGates: []string{"DynamicMIG"}}
		},
		"the release of the DRA driver": func(in *Inputs) {
			in.NodeType.Spec.GPU.Presentation.DRA = &v1alpha1.DRASpec{DriverRelease: "0.4.1"}
		},
		"partitions": func(in *Inputs) {
			in.NodeType.Spec.GPU.Presentation.Partitions = &v1alpha1.PartitionSpec{Compute: "CPX", Memory: "NPS1"}
		},
		"an address": func(in *Inputs) {
			in.NodeType.Spec.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Addresses: []string{"0000:17:00.0"}}
		},
		"a MIG profile's count":     func(in *Inputs) { in.NodeType.Spec.GPU.Presentation.MIG.Layout[0].Profiles["1g.10gb"] = 6 },
		"which GPUs are split":      func(in *Inputs) { in.NodeType.Spec.GPU.Presentation.MIG.Layout[0].GPUs = nil },
		"the node type's user data": func(in *Inputs) { in.NodeType.Spec.UserData += "\n" },
		"the provider's user data":  func(in *Inputs) { in.Provider.Spec.UserData = "#cloud-config\n" },
		"the provider's property":   func(in *Inputs) { in.Provider.Spec.Properties = map[string]string{"vlan": "100"} },
		"the node type's property":  func(in *Inputs) { in.NodeType.Spec.Properties = map[string]string{"vlan": "120"} },
		"the network":               func(in *Inputs) { in.Provider.Spec.Network.DNSServers[0] = "10.20.0.2" },
		"an SSH key less":           func(in *Inputs) { in.Provider.Spec.SSHKeys = nil },
	} {
		in := inputs()
		change(&in)
		if digestOf(t, in) == golden {
			t.Errorf("%s does not change the digest", name)
		}
	}
	for name, change := range map[string]func(*Inputs){
		"names":           func(in *Inputs) { in.NodeType.Name, in.Image.Name, in.Provider.Name = "a", "b", "c" },
		"the image's URL": func(in *Inputs) { in.Image.Spec.URL = "https://mirror.example.com/image" },
		"resources":       func(in *Inputs) { in.NodeType.Spec.Resources = corev1.ResourceList{"cpu": {}} },
		"zone and selector": func(in *Inputs) {
			in.NodeType.Spec.Zone = "hall-2"
			in.NodeType.Spec.Hardware = &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
			in.NodeType.Spec.HostSelector.MatchLabels = map[string]string{"a": "b"}
		},
		"node labels, taints, gate": func(in *Inputs) {
			in.NodeType.Spec.Node = &v1alpha1.NodeMetadata{Labels: map[string]string{"a": "b"}}
			in.NodeType.Spec.Gate.TaintKey = "x"
		},
		"erase, rollout, displayName": func(in *Inputs) { in.Provider.Spec.Erase = &v1alpha1.ErasePolicy{}; in.NodeType.Spec.DisplayName = "x" },
		"defaults that are left out or written": func(in *Inputs) {
			in.NodeType.Spec.GPU.Driver.Source = ""
			in.NodeType.Spec.GPU.Tenancy = v1alpha1.TenancyDedicated
			in.NodeType.Spec.GPU.Presentation.MIG.Advertise = ""
			in.Image.Spec.UserData = ""
		},
		"the order of SSH keys": func(in *Inputs) {
			in.Provider.Spec.SSHKeys, in.NodeType.Spec.SSHKeys = in.NodeType.Spec.SSHKeys, in.Provider.Spec.SSHKeys
		},
	} {
		in := inputs()
		change(&in)
		if digestOf(t, in) != golden {
			t.Errorf("%s changes the digest", name)
		}
	}
}

func TestAnAbsentMemberEqualsItsDefaults(t *testing.T) {
	short, long := inputs(), inputs()
	short.NodeType.Spec.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough}
	long.NodeType.Spec.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough, Passthrough: &v1alpha1.PassthroughSpec{
		Workload: v1alpha1.WorkloadContainer, Advertise: v1alpha1.AdvertiseDevicePlugin,
	}}
	if digestOf(t, short) != digestOf(t, long) {
		t.Error("writing the defaults out rolls the fleet")
	}
}

// TestTheUsersMembersOfKubeletRollAndNothingElseOfThemDoes shows that the order of members and what kind of document they are changes no digest, that none
// at all is no members, and that a change is another revision, from which the NodeType can be set back.
func TestTheUsersMembersOfKubeletRollAndNothingElseOfThemDoes(t *testing.T) {
	with := func(members string) Inputs {
		in := inputs()
		in.NodeType.Spec.Kubelet = &runtime.RawExtension{Raw: []byte(members)}
		return in
	}
	for _, empty := range []string{"", "{}", "null", `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}`} {
		if digestOf(t, with(empty)) != golden {
			t.Errorf("%q rolls the fleet", empty)
		}
	}
	one, same, other := with(`{"maxPods": 64, "kubeReserved": {"cpu": "1", "memory": "8Gi"}}`), with(`{"kind":"KubeletConfiguration","kubeReserved":{"memory":"8Gi","cpu":"1"},"maxPods":64}`), with(`{"maxPods": 65, "kubeReserved": {"cpu": "1", "memory": "8Gi"}}`)
	if digest := digestOf(t, one); digest == golden || digest != digestOf(t, same) || digest == digestOf(t, other) {
		t.Errorf("digests %s, %s, %s", digest, digestOf(t, same), digestOf(t, other))
	}
	spec, err := Build(one)
	if err != nil {
		t.Fatal(err)
	}
	own, err := OwnDigest(one)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Restore(other, &v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationInputs: own}}, Spec: spec})
	if err != nil || string(back.KubeletMembers()) != string(one.NodeType.Spec.KubeletMembers()) {
		t.Errorf("set back to %s (%v)", back.KubeletMembers(), err)
	}
}

// known are the fields that the encoding knows, or leaves out on purpose (in brackets).
var known = []struct {
	of     any
	fields string
}{
	{v1alpha1.NodeTypeRevisionSpec{}, "(NodeTypeRef) Image GPU UserData Properties Network SSHKeys Kubelet Containerd HashVersion"},
	{v1alpha1.RevisionImage{}, "(Name) Checksum Format UserData"},
	{v1alpha1.GPUSpec{}, "Vendor Model Count Driver IMEX Tenancy Generic Presentation"},
	{v1alpha1.GPUDriver{}, "Source Version KernelModule Packages"},
	{v1alpha1.Presentation{}, "Mode Passthrough VGPU MIG DRA Partitions"},
	{v1alpha1.PassthroughSpec{}, "Workload Advertise Sharing Addresses ResourceName"},
	{v1alpha1.SharingSpec{}, "Strategy Replicas"},
	{v1alpha1.VGPUSpec{}, "Role Types Framework NamePrefix Licence"},
	{v1alpha1.VGPULicence{}, "TokenSecretRef FeatureType"},
	{v1alpha1.MIGSpec{}, "Strategy Advertise Layout"},
	{v1alpha1.MIGLayout{}, "GPUs Profiles"},
	{v1alpha1.DRASpec{}, "Driver Devices Sharing Layout DriverRelease FeatureGates"},
	{v1alpha1.PartitionSpec{}, "Compute Memory ResourceNaming"},
	{v1alpha1.GenericSpec{}, "ResourceName ResourcesPerDevice KernelArguments Modules Blacklist Packages DRA"},
	{v1alpha1.GenericDRA{}, "Driver DeviceClass Type"},
	{v1alpha1.NetworkSpec{}, "CIDR DNSServers"},
	{v1alpha1.ContainerdSpec{}, "RegistryMirrors SandboxImage"},
	{v1alpha1.RegistryMirror{}, "Registry Endpoints CABundle"},
}

func TestNoFieldIsForgotten(t *testing.T) {
	for _, k := range known {
		names := strings.Fields(strings.NewReplacer("(", "", ")", "").Replace(k.fields))
		typ := reflect.TypeOf(k.of)
		for i := range typ.NumField() {
			if field := typ.Field(i).Name; !slices.Contains(names, field) {
				t.Errorf("%s.%s is new: encode it, its default leaving no trace, or list it in brackets", typ.Name(), field)
			}
		}
	}
}

func TestANameFitsALabelAndTellsLongNodeTypesApart(t *testing.T) {
	if name := Name("h100-mig", golden); name != "h100-mig-"+golden[:10] {
		t.Errorf("name %s", name)
	}
	long := strings.Repeat("a", 100)
	first, second := Name(long+"1", golden), Name(long+"2", golden)
	if len(first) != maxName || first == second {
		t.Errorf("names %s and %s", first, second)
	}
	if name := Name(strings.Repeat("a", 42)+"."+long, golden); strings.Contains(name, ".-") {
		t.Errorf("name %s is none of an object", name)
	}
}

func TestTheNodeTypesOwnPartIsToldFromItsProviders(t *testing.T) {
	own := func(change func(*Inputs)) string {
		in := inputs()
		change(&in)
		digest, err := OwnDigest(in)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	before := own(func(*Inputs) {})
	for name, change := range map[string]func(*Inputs){
		"user data": func(in *Inputs) { in.Provider.Spec.UserData = "#cloud-config\n" },
		"network":   func(in *Inputs) { in.Provider.Spec.Network = nil },
		"SSH keys":  func(in *Inputs) { in.Provider.Spec.SSHKeys = nil },
	} {
		if own(change) != before {
			t.Errorf("the provider's %s is taken for the NodeType's", name)
		}
	}
	if own(func(in *Inputs) { in.NodeType.Spec.UserData = "" }) == before || own(func(in *Inputs) { in.Image.Spec.Format = v1alpha1.FormatRaw }) == before {
		t.Error("a change of the NodeType's own is not seen")
	}
	in := inputs()
	in.Image.Status.Checksum = ""
	if _, err := OwnDigest(in); err == nil {
		t.Error("an image without a pinned checksum has a digest")
	}
}

func TestAnImageWithoutAPinnedChecksumMakesNoRevision(t *testing.T) {
	in := inputs()
	in.Image.Status.Checksum = ""
	if _, err := Build(in); err == nil || !strings.Contains(err.Error(), "debian-13") {
		t.Errorf("error %v", err)
	}
}
