package feasibility

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/cloudinit/containerd"
	"github.com/ingot-dev/ingot/cloudinit/properties"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// possible is a NodeType that can make nodes: eight H100 in MIG mode.
func possible() Inputs {
	return Inputs{
		NodeType: &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "h100-mig"}, Spec: v1alpha1.NodeTypeSpec{
			ProviderRef: v1alpha1.LocalReference{Name: "hall-1"}, OSImageRef: v1alpha1.LocalReference{Name: "debian"},
			GPU: &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8, Presentation: v1alpha1.Presentation{
				Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: "single", Layout: []v1alpha1.MIGLayout{{Profiles: map[string]int32{"3g.40gb": 2}}}},
			}},
		}},
		Provider: &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: "hall-1"}, Spec: v1alpha1.NodeProviderSpec{
			HostNamespace: "metal", Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}},
		}},
		Image: &v1alpha1.OSImage{ObjectMeta: metav1.ObjectMeta{Name: "debian"}, Spec: v1alpha1.OSImageSpec{
			Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit, OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"},
			KernelArguments: []string{"modprobe.blacklist=nouveau"},
			Software: v1alpha1.OSImageSoftware{
				Kubelet: "1.37.0", Containerd: "2.1.4", ContainerToolkit: "1.17.8", MIGParted: "0.12.1", FabricManager: "570.172.08",
				GPUDriver: &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "570.172.08", KernelModule: "Open"},
			},
		}},
	}
}

func TestANodeTypeThatCanMakeNodesHasAPlan(t *testing.T) {
	j := Check(possible())
	if err := j.Err(); err != nil || len(j.Missing)+len(j.Warnings) > 0 || len(j.Plan.Expectation.Resources) == 0 {
		t.Errorf("got %v, missing %v, warnings %v, plan %+v", err, j.Missing, j.Warnings, j.Plan.Expectation.Resources)
	}
}

func TestEveryRefusalNamesTheFieldTheRuleAndTheReason(t *testing.T) {
	for _, c := range []struct {
		name                    string
		change                  func(*Inputs)
		at, field, reason, rule string
		says                    string
	}{
		{"a full erase that nobody proves", func(in *Inputs) {
			in.Provider.Spec.Redfish, in.Provider.Spec.Ironic, in.Image.Spec.Format = nil, &v1alpha1.IronicProvider{}, v1alpha1.FormatRaw
			in.Provider.Spec.Erase = &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseFull}
		}, "NodeProvider hall-1", "spec.erase.onRelease", v1alpha1.ReasonEraseNotProven, "provider/erase", "counts as Metadata"},
		{"a format that ironic cannot write", func(in *Inputs) {
			in.Provider.Spec.Redfish, in.Provider.Spec.Ironic = nil, &v1alpha1.IronicProvider{}
		}, "NodeType h100-mig", "spec.osImageRef", v1alpha1.ReasonFormatUnsupported, "image/format", "redfish can"},
		{"hardware that Ironic does not compare", func(in *Inputs) {
			in.Provider.Spec.Redfish, in.Provider.Spec.Ironic, in.Image.Spec.Format = nil, &v1alpha1.IronicProvider{}, v1alpha1.FormatRaw
			in.NodeType.Spec.Hardware = &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
		}, "NodeType h100-mig", "spec.hardware", v1alpha1.ReasonProviderUnsupported, "provider/hardware", "ironic, whose own agent installs"},
		{"a format that redfish cannot write", func(in *Inputs) { in.Image.Spec.Format = v1alpha1.FormatQCOW2 },
			"NodeType h100-mig", "spec.osImageRef", v1alpha1.ReasonFormatUnsupported, "image/format", "ironic, metal3 can"},
		{"hardware that nobody compares", func(in *Inputs) {
			in.Provider.Spec.Redfish, in.Provider.Spec.Metal3, in.Image.Spec.Format = nil, &v1alpha1.Metal3Provider{}, v1alpha1.FormatRaw
			in.NodeType.Spec.Hardware = &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
		}, "NodeType h100-mig", "spec.hardware", v1alpha1.ReasonProviderUnsupported, "provider/hardware", "metal3, whose own agent installs"},
		{"a layout that does not fit", func(in *Inputs) { in.NodeType.Spec.GPU.Presentation.MIG.Layout[0].Profiles["1g.10gb"] = 1 },
			"NodeType h100-mig", "spec.gpu.presentation.mig.layout[0].profiles", v1alpha1.ReasonPresentationInvalid, "mig/", ""},
		{"too many GPUs", func(in *Inputs) { in.NodeType.Spec.GPU.Count = 99 },
			"NodeType h100-mig", "spec.gpu.count", v1alpha1.ReasonPresentationInvalid, "gpu/count", "99"},
		{"an image without the driver", func(in *Inputs) { in.Image.Spec.Software.GPUDriver = nil },
			"NodeType h100-mig", "spec.gpu.driver.source", v1alpha1.ReasonDriverMissing, "image/driver", "bake"},
		{"an image without the toolkit", func(in *Inputs) { in.Image.Spec.Software.ContainerToolkit = "" },
			"NodeType h100-mig", "spec.osImageRef", v1alpha1.ReasonPresentationInvalid, "image/container-toolkit", "containerToolkit"},
		{"user data that fights", func(in *Inputs) { in.NodeType.Spec.UserData = "#cloud-config\nhostname: x\n" },
			"NodeType h100-mig", "spec.userData", v1alpha1.ReasonUserDataInvalid, "user-data/conflict", "hostname"},
		{"the provider's user data", func(in *Inputs) { in.Provider.Spec.UserData = "#cloud-config\nruncmd: no\n" },
			"NodeProvider hall-1", "spec.userData", v1alpha1.ReasonUserDataInvalid, "user-data/invalid", "runcmd"},
		{"a member that kubelet does not have", func(in *Inputs) { in.NodeType.Spec.Kubelet = &runtime.RawExtension{Raw: []byte(`{"maxpods":64}`)} },
			"NodeType h100-mig", "spec.kubelet.maxpods", v1alpha1.ReasonKubeletInvalid, "kubelet/invalid", "did you mean maxPods?"},
		{"a member of a later kubelet", func(in *Inputs) {
			in.NodeType.Spec.Kubelet, in.Image.Spec.Software.Kubelet = &runtime.RawExtension{Raw: []byte(`{"defaultPodSysctls":{}}`)}, "1.36.1"
		}, "NodeType h100-mig", "spec.kubelet.defaultPodSysctls", v1alpha1.ReasonKubeletInvalid, "image/kubelet", "an image with kubelet 1.37"},
		{"a property that is not known", func(in *Inputs) { in.NodeType.Spec.Properties = map[string]string{"ingot.dev/x": "z"} },
			"NodeType h100-mig", "spec.properties[ingot.dev/x]", v1alpha1.ReasonUserDataInvalid, "properties/invalid", ""},
		{"a property that fights", func(in *Inputs) {
			in.NodeType.Spec.Properties = map[string]string{"vcluster.com/user-data": "#cloud-config\nhostname: x\n"}
		}, "NodeType h100-mig", "spec.properties[vcluster.com/user-data]", v1alpha1.ReasonUserDataInvalid, "user-data/conflict", "hostname"},
		{"more user data than a Secret holds", func(in *Inputs) {
			in.NodeType.Spec.UserData = "#cloud-config\nfinal_message: " + strings.Repeat("x", 600<<10) + "\n"
		},
			"NodeType h100-mig", "spec.userData", v1alpha1.ReasonUserDataInvalid, "user-data/too-large", "the limit is"},
	} {
		in := possible()
		c.change(&in)
		j := Check(in)
		if len(j.Refusals) != 1 {
			t.Errorf("%s: got %v, want one refusal", c.name, j.Refusals)
			continue
		}
		f := j.Refusals[0]
		if f.Kind+" "+f.Name != c.at || f.Field != c.field || f.Reason != c.reason || !strings.HasPrefix(f.Rule, c.rule) || !strings.Contains(f.Message, c.says) {
			t.Errorf("%s: got %+v", c.name, f)
		}
		var impossible *Impossible
		if !errors.As(j.Err(), &impossible) || !strings.Contains(impossible.Error(), "(rule "+f.Rule+")") {
			t.Errorf("%s: the error is %v", c.name, j.Err())
		}
	}
}

func TestAnObjectThatDoesNotExistIsMissingAndTheRestIsChecked(t *testing.T) {
	in := possible()
	in.Provider = nil
	in.NodeType.Spec.GPU.Count = 99
	j := Check(in)
	if len(j.Missing) != 1 || j.Missing[0].Reason != v1alpha1.ReasonProviderNotFound || len(j.Refusals) != 1 {
		t.Errorf("without the provider: missing %v, refused %v", j.Missing, j.Refusals)
	}
	in = possible()
	in.Image = nil
	in.Provider.Spec.Redfish, in.Provider.Spec.Ironic = nil, &v1alpha1.IronicProvider{}
	in.NodeType.Spec.Hardware = &v1alpha1.HardwareRequirements{GPULink: v1alpha1.GPULinkFullWidth}
	j = Check(in)
	if len(j.Missing) != 1 || j.Missing[0].Reason != v1alpha1.ReasonOSImageNotFound || len(j.Refusals) != 1 || j.Refusals[0].Rule != "provider/hardware" {
		t.Errorf("without the image: missing %v, refused %v", j.Missing, j.Refusals)
	}
}

func TestAnEraseThatANeighbourCanForgeCausesAWarning(t *testing.T) {
	network := []v1alpha1.BootWay{v1alpha1.BootWayNetwork}
	for name, c := range map[string]struct {
		change func(*v1alpha1.NodeProviderSpec)
		says   string
	}{
		"by the network alone": {func(p *v1alpha1.NodeProviderSpec) { p.Redfish.Netboot.Ways = network }, "booted by Network alone"},
		"the network as the last way": {func(p *v1alpha1.NodeProviderSpec) {
			p.Redfish.Netboot.Ways = append([]v1alpha1.BootWay{v1alpha1.BootWayVirtualMedia}, network...)
		}, ""},
		"BMCs that are not verified": {func(p *v1alpha1.NodeProviderSpec) { p.Redfish.InsecureSkipVerify = true }, "insecureSkipVerify"},
		"that is accepted": {func(p *v1alpha1.NodeProviderSpec) {
			p.Redfish.Netboot.Ways, p.Erase.AllowForgeableEraseBetweenTenants = network, true
		}, ""},
		"nothing is erased by release": {func(p *v1alpha1.NodeProviderSpec) {
			p.Redfish.Netboot.Ways, p.Erase.OnRelease = network, v1alpha1.EraseNone
		}, ""},
	} {
		in := possible()
		in.Provider.Spec.Erase = &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseFull}
		c.change(&in.Provider.Spec)
		j := Check(in)
		isWarned := len(j.Warnings) == 1 && j.Warnings[0].Rule == "provider/erase-forgeable" && strings.Contains(j.Warnings[0].Message, c.says)
		if j.Err() != nil || isWarned != (c.says != "") || !isWarned && len(j.Warnings) > 0 {
			t.Errorf("%s: %v, warnings %v", name, j.Err(), j.Warnings)
		}
	}
}

func TestAValueThatMayNotWorkCausesAWarning(t *testing.T) {
	in := possible()
	in.NodeType.Spec.UserData = "#cloud-config\nfinal_message: " + strings.Repeat("x", 20<<10) + "\n"
	j := Check(in)
	if j.Err() != nil || len(j.Warnings) != 1 || j.Warnings[0].Rule != "user-data/large" {
		t.Errorf("large user data: %v, warnings %v", j.Err(), j.Warnings)
	}
	in = possible()
	in.Image.Spec.Software.GPUDriver.Version, in.Image.Spec.Software.FabricManager = "580.126.09", "580.126.09"
	in.NodeType.Spec.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeDRA, DRA: &v1alpha1.DRASpec{Devices: "MIG", FeatureGates: []string{"DynamicMIG"}}}
	j = Check(in)
	if j.Err() != nil || len(j.Warnings) == 0 || j.Warnings[0].Field != "spec.gpu" || !strings.HasPrefix(j.Warnings[0].Rule, "experimental/") {
		t.Errorf("dynamic MIG: %v, warnings %v", j.Err(), j.Warnings)
	}
}

func TestAFindingReadsAsOneSentence(t *testing.T) {
	for want, f := range map[string]Finding{
		"spec.gpu.presentation.mig.layout[0].profiles: 3g.40gb does not fit": {Kind: KindNodeType, Field: "spec.gpu.presentation.mig.layout[0].profiles", Message: "3g.40gb does not fit"},
		"spec.gpu.count: it is 99, and a server has 1 to 8 GPUs":             {Kind: KindNodeType, Field: "spec.gpu.count", Message: "it is 99, and a server has 1 to 8 GPUs"},
		"spec.osImageRef: the OSImage debian does not exist":                 {Kind: KindNodeType, Field: "spec.osImageRef", Message: "the OSImage debian does not exist"},
		"NodeProvider hall-1: spec.userData: runcmd: it must be a list":      {Kind: KindNodeProvider, Name: "hall-1", Field: "spec.userData", Message: "runcmd: it must be a list"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestARefusalOfTheImageIsReportedAtTheReferenceToIt(t *testing.T) {
	in := possible()
	in.NodeType.Spec.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeDRA, DRA: &v1alpha1.DRASpec{Devices: "GPU"}}
	in.Image.Spec.Software.GPUDriver.Version, in.Image.Spec.Software.FabricManager = "580.126.09", "580.126.09"
	in.Image.Spec.Software.Containerd = "1.6.0"
	j := Check(in)
	if len(j.Refusals) != 1 {
		t.Fatalf("refused for %v", j.Refusals)
	}
	f := j.Refusals[0]
	if f.IsOfNodeTypeAlone() || !strings.HasPrefix(f.String(), "spec.osImageRef: the OSImage's spec.software.containerd: it is 1.6.0, and ") {
		t.Errorf("the NodeType's own %t: %s", f.IsOfNodeTypeAlone(), f)
	}
}

func TestAProviderWritesTheFormatsOfItsInstaller(t *testing.T) {
	const redfishFails, metal3Fails = "the OSImage debian has the format %s, which the redfish provider hall-1 cannot write; ironic, metal3 can",
		"the OSImage debian has the format %s, which the metal3 provider hall-1 cannot write; redfish can"
	for _, c := range []struct {
		format          v1alpha1.ImageFormat
		redfish, metal3 string // the refusal, or empty
	}{
		{v1alpha1.FormatRaw, "", ""},
		{v1alpha1.FormatRawGzip, "", metal3Fails},
		{v1alpha1.FormatRawZstd, "", metal3Fails},
		{v1alpha1.FormatQCOW2, redfishFails, ""},
	} {
		for want, kind := range map[*string]v1alpha1.NodeProviderSpec{
			&c.redfish: {Redfish: &v1alpha1.RedfishProvider{}},
			&c.metal3:  {Metal3: &v1alpha1.Metal3Provider{}},
		} {
			in := possible()
			in.Image.Spec.Format, in.Provider.Spec = c.format, kind
			got := ""
			for _, f := range Check(in).Refusals {
				got += f.Message
			}
			if *want != "" {
				*want = fmt.Sprintf(*want, c.format)
			}
			if got != *want {
				t.Errorf("%s: refused for %q, want %q", c.format, got, *want)
			}
		}
	}
}

func TestAMissingObjectIsNamedWithTheFieldThatNamesIt(t *testing.T) {
	in := possible()
	in.Provider, in.Image = nil, nil
	want := []Finding{
		{KindNodeType, "h100-mig", "spec.providerRef", v1alpha1.ReasonProviderNotFound, "reference/missing", "the NodeProvider hall-1 does not exist: create it"},
		{KindNodeType, "h100-mig", "spec.osImageRef", v1alpha1.ReasonOSImageNotFound, "reference/missing", "the OSImage debian does not exist: create it"},
	}
	j := Check(in)
	if !slices.Equal(j.Missing, want) || j.Err() != nil || j.Warnings != nil || len(j.Plan.Expectation.Resources) > 0 {
		t.Errorf("got %+v, want the missing %+v and nothing else", j, want)
	}
	in = possible()
	in.Image = nil
	if j := Check(in); !slices.Equal(j.Missing, want[1:]) || j.Err() != nil {
		t.Errorf("without the image: missing %+v, refused %v", j.Missing, j.Err())
	}
}

func TestAFindingDependsOnTheNodeTypeAloneUnlessAnotherObjectCouldResolveIt(t *testing.T) {
	for _, c := range []struct {
		finding Finding
		want    bool
	}{
		{Finding{Kind: KindNodeType, Field: "spec.gpu.count", Reason: v1alpha1.ReasonPresentationInvalid, Rule: "gpu/count"}, true},
		{Finding{Kind: KindNodeType, Field: "spec.userData", Reason: v1alpha1.ReasonUserDataInvalid, Rule: "user-data/conflict"}, true},
		{Finding{Kind: KindNodeProvider, Field: "spec.userData", Reason: v1alpha1.ReasonUserDataInvalid, Rule: "user-data/conflict"}, false},
		{Finding{Kind: KindNodeType, Field: "spec.osImageRef", Reason: v1alpha1.ReasonUserDataInvalid, Rule: "user-data/unsupported"}, false},
		{Finding{Kind: KindNodeType, Field: "spec.gpu", Reason: v1alpha1.ReasonPresentationInvalid, Rule: "image/container-toolkit"}, false},
		{Finding{Kind: KindNodeType, Field: "spec.providerRef", Reason: v1alpha1.ReasonProviderUnsupported, Rule: "provider/unsupported"}, false},
		{Finding{Kind: KindNodeType, Field: "spec.providerRef", Reason: v1alpha1.ReasonProviderNotFound, Rule: "reference/missing"}, false},
		{Finding{Kind: KindNodeType, Field: "spec.gpu", Reason: v1alpha1.ReasonDriverMissing, Rule: "gpu/driver"}, false},
		{Finding{Kind: KindNodeType, Field: "spec.gpu", Reason: v1alpha1.ReasonDriverTooOld, Rule: "gpu/driver"}, false},
		{Finding{Kind: KindNodeType, Field: "spec.gpu", Reason: v1alpha1.ReasonKernelArgumentMissing, Rule: "gpu/kernel"}, false},
		{Finding{Kind: KindNodeType, Field: "spec.gpu", Reason: v1alpha1.ReasonFormatUnsupported, Rule: "gpu/format"}, false},
	} {
		if got := c.finding.IsOfNodeTypeAlone(); got != c.want {
			t.Errorf("%+v: %t, want %t", c.finding, got, c.want)
		}
	}
}

func TestTheDocumentsOfANodeHaveTheLayersOfProviderAndNodeTypeInThatOrder(t *testing.T) {
	in := possible()
	in.Provider.Spec.UserData, in.Provider.Spec.SSHKeys = "provider", []string{"shared", "operations"}
	in.Provider.Spec.Properties = map[string]string{"of": "provider"}
	in.Provider.Spec.Network = &v1alpha1.NetworkSpec{CIDR: "10.20.4.1/22"}
	in.NodeType.Spec.UserData, in.NodeType.Spec.SSHKeys = "nodetype", []string{"own", "shared"}
	in.NodeType.Spec.Properties = map[string]string{"of": "nodetype"}
	in.NodeType.Spec.Gate.TaintKey = "example.com/gate"
	in.Provider.Spec.Containerd = &v1alpha1.ContainerdSpec{SandboxImage: "registry.example.com/pause:3.10.1"}
	plan := v1alpha1.NodePlan{KernelArguments: []string{"of-the-plan"}}
	want := cloudinit.Input{
		Kind: v1alpha1.UserDataCloudInit, OS: "debian", KernelArguments: []string{"modprobe.blacklist=nouveau"}, Plan: plan, Gate: in.NodeType.Spec.Gate.Key(),
		Network: in.Provider.Spec.Network, SSHKeys: []string{"shared", "operations", "own"}, Kubelet: cloudinit.KubeletInput{Version: in.Image.Spec.Software.Kubelet},
		Containerd: containerd.Node{Version: "2.1.4", Runtime: true, CDI: true, Settings: in.Provider.Spec.Containerd},
		Layers:     []cloudinit.Layer{{Name: "NodeProvider hall-1", Text: "provider"}, {Name: "NodeType h100-mig", Text: "nodetype"}},
		Properties: []properties.Level{
			{Name: "NodeProvider hall-1", Values: in.Provider.Spec.Properties}, {Name: "NodeType h100-mig", Values: in.NodeType.Spec.Properties},
		},
	}
	if got := in.Documents(plan); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	in.Provider = nil
	want.Network, want.SSHKeys, want.Layers, want.Properties = nil, []string{"own", "shared"}, want.Layers[1:], want.Properties[1:]
	want.Containerd.Settings = nil
	if got := in.Documents(plan); !reflect.DeepEqual(got, want) {
		t.Errorf("without the provider: got %+v\nwant %+v", got, want)
	}
}

func TestThePlanIsThePinnedOneOrElseTheResolvedOne(t *testing.T) {
	resolved := 0
	in := possible()
	in.Resolve = func(spec.Request) (v1alpha1.NodePlan, error) {
		resolved++
		return v1alpha1.NodePlan{KernelArguments: []string{"resolved"}}, nil
	}
	if j := Check(in); j.Err() != nil || resolved != 1 || !slices.Equal(j.Plan.KernelArguments, []string{"resolved"}) {
		t.Errorf("resolved %d times: %+v, %v", resolved, j.Plan, j.Err())
	}
	in.Pinned = &v1alpha1.NodePlan{KernelArguments: []string{"pinned"}}
	in.NodeType.Spec.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96")}
	j := Check(in)
	if j.Err() != nil || resolved != 1 || !slices.Equal(j.Plan.KernelArguments, []string{"pinned"}) || j.Plan.Expectation.CPU == nil || j.Plan.Expectation.CPU.Value() != 96 {
		t.Errorf("resolved %d times: %+v, %v", resolved, j.Plan, j.Err())
	}
	if in.Pinned.Expectation.CPU != nil {
		t.Error("the pinned plan was changed")
	}
	in.NodeType.Spec.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")}
	if j := Check(in); len(j.Refusals) != 1 || j.Refusals[0].Rule != "promise/negative" || len(j.Plan.KernelArguments) > 0 {
		t.Errorf("a negative promise: %v", j.Refusals)
	}
}

func TestAnErrorThatIsNoRefusalIsReportedAtTheGPU(t *testing.T) {
	in := possible()
	in.Resolve = func(spec.Request) (v1alpha1.NodePlan, error) {
		return v1alpha1.NodePlan{}, errors.New("no such catalogue")
	}
	want := []Finding{{KindNodeType, "h100-mig", "spec.gpu", v1alpha1.ReasonPresentationInvalid, "gpu/invalid", "no such catalogue"}}
	if got := Check(in).Refusals; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAnErrorOfTheDocumentsIsReportedAtTheFieldThatCausesIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Inputs)
		want   string // object, field and rule of each refusal
	}{
		{"a property of the provider", func(in *Inputs) { in.Provider.Spec.Properties = map[string]string{"ingot.dev/x": "z"} },
			"NodeProvider hall-1: spec.properties[ingot.dev/x]: properties/invalid"},
		{"address ranges outside the network of the provider", func(in *Inputs) {
			in.Provider.Spec.Network = &v1alpha1.NetworkSpec{CIDR: "10.20.4.1/22"}
			in.Provider.Spec.Properties = map[string]string{properties.NetworkIPRange: "10.30.0.1-10.30.0.9"}
		}, "NodeProvider hall-1: spec.network: network/invalid"},
		{"a kind of user data that is not known", func(in *Inputs) { in.Image.Spec.UserData = "Kickstart" },
			"NodeType h100-mig: spec.osImageRef: user-data/unsupported"},
		{"user data of both", func(in *Inputs) {
			in.Provider.Spec.UserData, in.NodeType.Spec.UserData = "#cloud-config\nruncmd: no\n", "#cloud-config\nwrite_files: no\n"
		}, "NodeProvider hall-1: spec.userData: user-data/invalid, NodeType h100-mig: spec.userData: user-data/invalid"},
		{"user data without a provider", func(in *Inputs) { in.Provider, in.NodeType.Spec.UserData = nil, "#cloud-config\nruncmd: no\n" },
			"NodeType h100-mig: spec.userData: user-data/invalid"},
	} {
		in := possible()
		c.change(&in)
		var got []string
		for _, f := range Check(in).Refusals {
			got = append(got, f.Kind+" "+f.Name+": "+f.Field+": "+f.Rule)
			if f.Reason != v1alpha1.ReasonUserDataInvalid || f.Message == "" {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	in := possible()
	in.NodeType.Spec.UserData = "#cloud-config\nruncmd: no\n"
	if got := Check(in).Refusals; len(got) != 1 || !strings.HasPrefix(got[0].Message, "runcmd: ") {
		t.Errorf("the message does not begin with the path in the user data: %+v", got)
	}
	in.NodeType.Spec.UserData = "#cloud-config\n- a\n"
	if got := Check(in).Refusals; len(got) != 1 || !strings.HasPrefix(got[0].Message, "line 2: ") {
		t.Errorf("the message about all of the user data does not begin with the line: %+v", got)
	}
}

func TestAnErrorNamesEveryRefusal(t *testing.T) {
	refusals := []Finding{{Kind: KindNodeType, Field: "spec.a", Rule: "a/1", Message: "is wrong"}, {Kind: KindNodeProvider, Name: "p", Field: "spec.b", Rule: "b/2", Message: "is missing"}}
	if got, want := (Result{Refusals: refusals}).Err().Error(), "spec.a: is wrong (rule a/1); NodeProvider p: spec.b: is missing (rule b/2)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := (Result{Missing: refusals, Warnings: refusals}).Err(); err != nil {
		t.Errorf("without refusals: %v", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	in := possible()
	for b.Loop() {
		if err := Check(in).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestUserDataIsCheckedAlthoughThePresentationIsRefused(t *testing.T) {
	in := possible()
	in.NodeType.Spec.GPU.Count = 99
	in.NodeType.Spec.UserData = "#cloud-config\nruncmd: no\n"
	var rules []string
	for _, f := range Check(in).Refusals {
		rules = append(rules, f.Rule)
	}
	if want := []string{"gpu/count", "user-data/invalid"}; !slices.Equal(rules, want) {
		t.Errorf("the rules are %v, want %v", rules, want)
	}
}

func TestAContainerdThatMergesNoDropInIsTold(t *testing.T) {
	for version, want := range map[string]string{"1.7.23": "must have the runtime /usr/bin/nvidia-container-runtime, the sandbox image", "": "does not say which containerd", "2.1.4": ""} {
		in := possible()
		in.Image.Spec.Software.Containerd = version
		in.Provider.Spec.Containerd = &v1alpha1.ContainerdSpec{SandboxImage: "registry.example.com/pause:3.10.1"}
		var got []string
		for _, w := range Check(in).Warnings {
			if w.Rule == "image/containerd" {
				got = append(got, w.String())
			}
		}
		if (len(got) == 1) != (want != "") || !strings.Contains(strings.Join(got, ""), want) {
			t.Errorf("containerd %q: warnings %v, want %q", version, got, want)
		}
	}
}
