package convert

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// provider returns a NodeProvider of vMetal's with one node type.
func provider(t *testing.T, properties, nodeType string) offline.Manifest {
	t.Helper()
	m := offline.Manifest{}
	text := "{apiVersion: management.loft.sh/v1, kind: NodeProvider, metadata: {name: p}, spec: {properties: {" + properties + "}, metal3: {nodeTypes: [{name: a, " + nodeType + "}]}}}"
	if err := yaml.Unmarshal([]byte(text), &m.Object); err != nil {
		t.Fatal(err)
	}
	return m
}

// converted returns an object of the result as JSON, and the messages of all findings.
func converted(t *testing.T, kind string, manifests ...offline.Manifest) (object map[string]any, findings string) {
	t.Helper()
	out := Convert(manifests)
	for _, o := range out.Objects {
		if o.Object["kind"] == kind {
			object = o.Object
		}
	}
	for _, f := range out.Findings {
		findings += f.Message + " (" + f.Rule + ")\n"
	}
	return object, findings
}

func TestEveryResourceBecomesAPresentationOrSaysWhatItNeeds(t *testing.T) {
	selector := func(labels string) string {
		return "bareMetalHosts: {selector: {matchLabels: {" + labels + "}}}, "
	}
	for sentence, c := range map[string]struct {
		nodeType, gpu, finding string
	}{
		"a layout on 8 GPUs": {selector("gpu-model: A100-SXM4-40GB, gpu-count: '8'") + "resources: {nvidia.com/mig-1g.5gb: 56}",
			"{count: 8, model: A100-SXM4-40GB, vendor: nvidia, presentation: {mode: MIG, mig: {strategy: mixed, layout: [{profiles: {1g.5gb: 7}}]}}}", ""},
		"a layout whose GPUs nobody counts": {selector("gpu-model: A100-SXM4-40GB") + "resources: {nvidia.com/mig-1g.5gb: '56'}",
			"{count: 8, model: A100-SXM4-40GB, vendor: nvidia, presentation: {mode: MIG, mig: {strategy: mixed, layout: [{profiles: {1g.5gb: 7}}]}}}", "smallest number"},
		"several profiles, one with media": {selector("model: H100-SXM5-80GB, x/gpu-count: '4'") + "resources: {nvidia.com/mig-3g.40gb: 4, nvidia.com/mig-1g.10gb: 8, nvidia.com/mig-1g.10gb.me: 4}",
			"{count: 4, model: H100-SXM5-80GB, vendor: nvidia, presentation: {mode: MIG, mig: {strategy: mixed, layout: [{profiles: {3g.40gb: 1, 1g.10gb: 2, 1g.10gb+me: 1}}]}}}", ""},
		"beside whole GPUs": {selector("model: H100-SXM5-80GB, gpu-count: '4'") + "resources: {nvidia.com/mig-3g.40gb: 4, nvidia.com/gpu: 2}",
			"{count: 4, model: H100-SXM5-80GB, vendor: nvidia, presentation: {mode: MIG, mig: {strategy: mixed, layout: [{gpus: [0, 1], profiles: {3g.40gb: 2}}]}}}", "here the first 2"},
		"profiles of several models": {selector("gpu-count: '2'") + "resources: {nvidia.com/mig-1g.5gb: 14}",
			"{count: 2, vendor: nvidia, presentation: {mode: MIG, mig: {strategy: mixed, layout: [{profiles: {1g.5gb: 7}}]}}}", "A100-SXM4-40GB, A100-PCIe-40GB"},
		"a layout that no GPU can have":     {selector("model: H100-SXM5-80GB, gpu-count: '1'") + "resources: {nvidia.com/mig-3g.40gb: 3}", "", "presentation.mig.layout (convert/add)"},
		"profiles of another model":         {selector("model: H100-SXM5-80GB, gpu-count: '1'") + "resources: {nvidia.com/mig-1g.5gb: 7}", "", "not the one of the selector"},
		"GPUs by their product name":        {selector("gpu: NVIDIA-H100-80GB-HBM3") + "resources: {nvidia.com/gpu: 8}", "{count: 8, model: H100-SXM5-80GB, vendor: nvidia, presentation: {mode: Passthrough}}", ""},
		"shared under the same name":        {selector("gpu: NVIDIA-L40S, gpu-count: '4'") + "resources: {nvidia.com/gpu: 16}", "{count: 4, model: L40S-48GB, vendor: nvidia, presentation: {mode: Passthrough, passthrough: {sharing: {strategy: TimeSlicing, replicas: 4}}}}", "choose the strategy"},
		"shared under another name":         {selector("gpu: NVIDIA-L40S, gpu-count: '4'") + "resources: {nvidia.com/gpu.shared: 8}", "{count: 4, model: L40S-48GB, vendor: nvidia, presentation: {mode: Passthrough, passthrough: {sharing: {strategy: TimeSlicing, replicas: 2}}}}", "pods request nvidia.com/gpu"},
		"shared by nobody knows how many":   {"resources: {nvidia.com/gpu.shared: 8}", "", "presentation.passthrough.sharing"},
		"for virtual machines":              {"resources: {nvidia.com/GH100_H100_SXM5_80GB: 8}", "{count: 8, model: H100-SXM5-80GB, vendor: nvidia, presentation: {mode: Passthrough, passthrough: {workload: VM, resourceName: nvidia.com/GH100_H100_SXM5_80GB}}}", "no GPU driver"},
		"for virtual machines, by a number": {"resources: {nvidia.com/3182: 8}", "{count: 8, model: B300-SXM-269GB, vendor: nvidia, presentation: {mode: Passthrough, passthrough: {workload: VM, resourceName: nvidia.com/3182}}}", ""},
		"virtual GPUs":                      {"resources: {nvidia.com/NVIDIA_A10-12Q: 8}", "{count: 4, model: A10-24GB, vendor: nvidia, presentation: {mode: VGPU, vgpu: {role: Host, types: {A10-12Q: 2}}}}", "are 2 on each of 4 GPUs"},
		"older virtual GPUs":                {selector("gpu-count: '2'") + "resources: {nvidia.com/GRID_T4-4Q: 4}", "{count: 2, model: T4-16GB, vendor: nvidia, presentation: {mode: VGPU, vgpu: {role: Host, types: {T4-4Q: 2}, namePrefix: GRID}}}", ""},
		"what nobody advertises":            {"resources: {nvidia.com/unheard-of: 8}", "", "add spec.gpu with its presentation"},
		"AMD's GPUs":                        {selector("gpu: MI300X-192GB") + "resources: {amd.com/gpu: 8}", "{count: 8, model: MI300X-192GB, vendor: amd, presentation: {mode: Passthrough}}", ""},
		"AMD's partitions":                  {selector("gpu: MI300X-192GB") + "resources: {amd.com/cpx_nps4: 64}", "{count: 8, model: MI300X-192GB, vendor: amd, presentation: {mode: Passthrough, partitions: {compute: CPX, memory: NPS4, resourceNaming: mixed}}}", ""},
		"AMD's partitions of some model":    {"resources: {amd.com/cpx_nps4: 64}", "", "presentation.partitions (convert/add)"},
		"another vendor's":                  {"resources: {habana.ai/gaudi: 8}", "{count: 8, model: gaudi, vendor: generic, generic: {resourceName: habana.ai/gaudi}, presentation: {mode: Passthrough}}", "resourcesPerDevice"},
		"two vendors'":                      {selector("gpu: MI300X-192GB") + "resources: {habana.ai/gaudi: 8, amd.com/gpu: 8}", "{count: 8, model: MI300X-192GB, vendor: amd, presentation: {mode: Passthrough}}", "make another NodeType"},
		"half a GPU":                        {"resources: {nvidia.com/gpu: 0.5}", "", "not a number of devices"},
	} {
		object, findings := converted(t, "NodeType", provider(t, "", c.nodeType))
		var want any
		if c.gpu != "" {
			if err := yaml.Unmarshal([]byte(c.gpu), &want); err != nil {
				t.Fatal(err)
			}
		}
		got, err := yaml.Marshal(conversion.ValueAt[any](object, "spec", "gpu"))
		if err != nil {
			t.Fatal(err)
		}
		expected, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(expected) || !strings.Contains(findings, c.finding) {
			t.Errorf("%s: spec.gpu is\n%swant\n%swith %q in:\n%s", sentence, got, expected, c.finding, findings)
		}
		if promised := conversion.ValueAt[map[string]any](object, "spec", "resources"); len(promised) > 0 {
			t.Errorf("%s: GPUs are promised twice: %v", sentence, promised)
		}
	}
}

func TestAnImagesURLBecomesAnOSImageToComplete(t *testing.T) {
	const url = "metal3.vcluster.com/image-url: https://x.example.com/a.raw.gz"
	for sentence, c := range map[string]struct{ provider, nodeType, image, finding string }{
		"of the provider":            {url, "x: y", "p-image", "OSImage p-image is made of the URL: add spec.os"},
		"of the node type":           {url, "properties: {" + url + "}", "a-image", "OSImage a-image"},
		"beside an OSImage":          {url + ", vcluster.com/os-image: noble", "x: y", "noble", "the OSImage noble is named too"},
		"of the provider, but named": {url, "properties: {vcluster.com/os-image: noble}", "noble", "OSImage p-image"},
	} {
		object, findings := converted(t, "NodeType", provider(t, c.provider, c.nodeType))
		if got := conversion.ValueAt[string](object, "spec", "osImageRef", "name"); got != c.image || !strings.Contains(findings, c.finding) {
			t.Errorf("%s: the image is %q, want %q and %q in:\n%s", sentence, got, c.image, c.finding, findings)
		}
	}
	image, _ := converted(t, "OSImage", provider(t, url, "x: y"))
	if conversion.ValueAt[string](image, "spec", "url") != "https://x.example.com/a.raw.gz" || conversion.ValueAt[string](image, "spec", "format") != "raw.gz" {
		t.Errorf("the OSImage is %v", image)
	}
}

func TestScriptsThatFightAPresentationAreNamed(t *testing.T) {
	for script, want := range map[string]string{
		"nvidia-smi -i 0 mig -cgi 19": "`nvidia-smi -i 0 mig`", "systemctl enable --now nvidia-mig-manager": "`nvidia-mig-manager`", "modprobe nvidia-uvm": "modprobe nvidia",
		"apt-get install -y nvidia-driver-570": "apt-get install -y nvidia", "amd-smi set --gpu all --compute-partition CPX": "presentation.partitions",
		"kubeadm join 10.0.0.1:6443 --token x": "`kubeadm join`", "systemctl restart kubelet": "after the GPUs have their presentation", "systemctl restart nvidia-fabricmanager": "nvidia-fabricmanager",
		"echo hello; nvidia-smi -L": "", "apt-get install -y lldpd": "",
	} {
		_, findings := converted(t, "NodeType", provider(t, "vcluster.com/user-data: '#cloud-config\n\n\n  runcmd: [\""+script+"\"]'", "resources: {nvidia.com/gpu: 8}"))
		if named := strings.Contains(findings, "its user data has"); named != (want != "") || !strings.Contains(findings, want) {
			t.Errorf("%s: want %q in:\n%s", script, want, findings)
		}
	}
	if _, findings := converted(t, "NodeType", provider(t, "vcluster.com/user-data: 'modprobe nvidia'", "resources: {cpu: 8}")); strings.Contains(findings, "its user data has") {
		t.Errorf("a node without GPUs has no presentation to fight: %s", findings)
	}
}

// TestATrialRenderHasExampleValues: an address of the ranges, and what templates read of hosts, are no findings.
func TestATrialRenderHasExampleValues(t *testing.T) {
	const network = "metal3.vcluster.com/network-cidr: 10.20.4.1/22, metal3.vcluster.com/network-ip-range: 10.20.4.10-10.20.4.99, rack: r1"
	template := offline.Manifest{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: management.loft.sh/v1, kind: MachineConfigTemplate, metadata: {name: t}, spec: {cloudInitTemplate: "#cloud-config\nbootcmd: ['echo {{ .Values.BareMetalHost.metadata.labels.row }} {{ .Values.Properties.rack }} {{ .Values.AllocatedIP }} {{ .Values.Gateway }}']\n"}}`), &template.Object); err != nil {
		t.Fatal(err)
	}
	_, findings := converted(t, "NodeType", provider(t, network, "properties: {vcluster.com/user-data-template-config: t}"), template)
	if strings.Contains(findings, "no entry for key") || strings.Contains(findings, "ip-address") || strings.Contains(findings, "spec.metal3.nodeTypes[0].properties: property") {
		t.Errorf("findings of example values: %s", findings)
	}
	_, findings = converted(t, "NodeType", provider(t, "metal3.vcluster.com/network-cidr: nonsense", "x: y"))
	if !strings.Contains(findings, "network-cidr: it must be the gateway's address") {
		t.Errorf("a network that no Machine can have is not told of: %s", findings)
	}
}
