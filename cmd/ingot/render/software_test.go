package render

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// more are NodeTypes beside the samples', and their image.
const more = `
apiVersion: ingot.dev/v1alpha1
kind: OSImage
metadata: {name: plain}
spec:
  url: https://images.example.com/plain.raw.zst
  checksum: sha256:9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de
  format: raw.zst
  os: {id: debian, version: "13", kernel: 6.12.107}
  kernelArguments: [modprobe.blacklist=nouveau]
  software: {kubelet: 1.37.0, containerd: 2.2.0}
---
apiVersion: ingot.dev/v1alpha1
kind: NodeType
metadata: {name: operated}
spec:
  providerRef: {name: hall-1}
  hostSelector: {matchLabels: {use: operated}}
  osImageRef: {name: plain}
  gate: {taintKey: example.com/new}
  node: {taints: [{key: example.com/team, value: a, effect: NoExecute}]}
  gpu:
    vendor: nvidia
    model: A100-SXM4-80GB
    count: 8
    driver: {source: Operator, version: 580.126.09, kernelModule: Open}
    presentation: {mode: MIG, mig: {strategy: mixed, layout: [{profiles: {1g.10gb: 7}}]}}
---
apiVersion: ingot.dev/v1alpha1
kind: NodeType
metadata: {name: gaudi}
spec:
  providerRef: {name: hall-1}
  hostSelector: {matchLabels: {use: gaudi}}
  osImageRef: {name: plain}
  gpu:
    vendor: generic
    model: Gaudi-3
    count: 8
    generic: {resourceName: habana.ai/gaudi}
    presentation: {mode: Passthrough}
---
apiVersion: ingot.dev/v1alpha1
kind: NodeType
metadata: {name: bare}
spec:
  providerRef: {name: hall-1}
  hostSelector: {matchLabels: {use: bare}}
  osImageRef: {name: plain}
---
apiVersion: ingot.dev/v1alpha1
kind: OSImage
metadata: {name: iommu}
spec:
  url: https://images.example.com/iommu.raw.zst
  checksum: sha256:9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de
  format: raw.zst
  os: {id: debian, version: "13", kernel: 6.12.107}
  kernelArguments: [modprobe.blacklist=nouveau, intel_iommu=on]
  software: {kubelet: 1.37.0, containerd: 2.2.0}
---
apiVersion: ingot.dev/v1alpha1
kind: NodeType
metadata: {name: machines}
spec:
  providerRef: {name: hall-1}
  hostSelector: {matchLabels: {use: machines}}
  osImageRef: {name: iommu}
  gpu:
    vendor: nvidia
    model: L40S-48GB
    count: 4
    presentation: {mode: Passthrough, passthrough: {workload: VM}}
`

func TestOperatorValuesAreThoseOfTheChart(t *testing.T) {
	status, stdout, stderr := render(more, "-f", "-", "--nodetype", "operated", "-o", "operator-values")
	if status != cli.ExitOK || stderr != "" {
		t.Fatal(stderr)
	}
	values, objects, found := strings.Cut(stdout, "\n---\n")
	var got struct {
		Driver struct {
			Enabled                   bool
			Version, KernelModuleType string
		}
		MIGManager struct {
			Config struct{ Name, Default string }
		}
		Daemonsets struct{ Tolerations []map[string]string }
	}
	if err := yaml.Unmarshal([]byte(values), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Driver.Enabled || got.Driver.Version != "580.126.09" || got.Driver.KernelModuleType != "open" || got.MIGManager.Config.Default != "all-disabled" {
		t.Errorf("%+v", got)
	}
	tolerated := map[string]string{}
	for _, each := range got.Daemonsets.Tolerations {
		tolerated[each["key"]] = each["operator"] + each["value"] + each["effect"]
	}
	if tolerated["example.com/new"] != "ExistsNoSchedule" || tolerated["example.com/team"] != "EqualaNoExecute" {
		t.Errorf("the gate and the NodeType's own taints: %v", tolerated)
	}
	var config struct {
		Metadata struct{ Name string }
		Data     map[string]string
	}
	if err := yaml.Unmarshal([]byte(objects), &config); !found || err != nil || config.Metadata.Name != got.MIGManager.Config.Name || !strings.Contains(config.Data["config.yaml"], "1g.10gb") {
		t.Errorf("%v: %s", err, objects)
	}
	if !strings.Contains(values, "# helm upgrade --install gpu-operator") {
		t.Errorf("how to install it is not said: %s", values)
	}
}

func TestTheSoftwareIsThatOfTheChosenNodeTypes(t *testing.T) {
	for sentence, c := range map[string]struct {
		args             []string
		want, absent, of []string
	}{
		"all":                {[]string{"-f", samples, "-o", "operator-manifests"}, []string{"- h100\n", "- h100-mig\n", "- h200-dra\n"}, nil, nil},
		"one":                {[]string{"-f", samples, "--nodetype", "h100-mig", "-o", "operator-manifests"}, []string{"- h100-mig\n"}, []string{"- h100\n", "DeviceClass"}, nil},
		"two":                {[]string{"-f", samples, "--nodetype", "h100,h100-mig", "-o", "operator-manifests"}, []string{"- h100\n", "- h100-mig\n"}, []string{"DeviceClass"}, nil},
		"a chart":            {[]string{"-f", samples, "-o", "operator-values", "--chart", "dra-driver-nvidia-gpu"}, []string{"gpuResourcesEnabledOverride: true"}, []string{"migStrategy"}, nil},
		"mirrors":            {[]string{"-f", samples, "--nodetype", "h100", "-o", "operator-manifests", "--mirror", "nvcr.io=r.example.com/n"}, []string{"image: r.example.com/n/nvidia/k8s-device-plugin"}, []string{"nvcr.io"}, nil},
		"mirrors of a chart": {[]string{"-f", samples, "--nodetype", "h100", "-o", "operator-values", "--mirror", "nvcr.io=r.example.com/n"}, []string{"  repository: r.example.com/n/nvidia/k8s-device-plugin"}, nil, nil},
		"a release":          {[]string{"-f", samples, "-o", "operator-values", "--chart", "nvidia-device-plugin-mig-mixed"}, []string{"migStrategy: mixed"}, []string{"migStrategy: none"}, nil},
		"what is one's own":  {[]string{"-f", "-", "--nodetype", "gaudi", "-o", "operator-values"}, nil, nil, []string{"note: NodeType gaudi: the device plugin that advertises habana.ai/gaudi is yours", "tolerate ingot.dev/unvalidated:NoSchedule"}},
		"the operator alone": {[]string{"-f", "-", "--nodetype", "operated", "-o", "operator-manifests"}, []string{"ingot-mig-parted-config"}, nil, []string{"note: NodeType operated takes its driver from the vendor's operator, which only a chart installs: --output operator-values"}},
		"no GPU":             {[]string{"-f", "-", "--nodetype", "bare", "-o", "operator-values"}, nil, nil, []string{"note: NodeType bare has no GPU"}},
		"a chart of objects": {[]string{"-f", "-", "--nodetype", "machines", "-o", "operator-values"}, []string{"\n# Note: the KubeVirt object"}, []string{"# # "}, nil},
		"those of a tenant":  {[]string{"-f", samples, "--tenant", "research", "-o", "operator-values"}, []string{"migStrategy"}, nil, nil},
		"without any notice": {[]string{"-f", samples, "--nodetype", "h100", "-o", "operator-values"}, []string{"migStrategy: none"}, []string{"\n---\n"}, nil},
	} {
		status, stdout, stderr := render(more, c.args...)
		if status != cli.ExitOK {
			t.Errorf("%s: %s", sentence, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in %s", sentence, want, stdout)
			}
		}
		for _, absent := range c.absent {
			if strings.Contains(stdout, absent) {
				t.Errorf("%s: %q in %s", sentence, absent, stdout)
			}
		}
		for _, want := range c.of {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: no %q in %s", sentence, want, stderr)
			}
		}
	}
}

func TestWhatIsWrongWithTheSoftwareIsSaid(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-f", samples, "-o", "operator-values", "--machine", "a"}, cli.ExitUsage, "expected neither --machine nor --host"},
		{[]string{"-f", samples, "-o", "operator-manifests", "--chart", "gpu-operator"}, cli.ExitUsage, "expected --output operator-values"},
		{[]string{"-f", samples, "-o", "user-data", "--machine", "a", "--tenant", "research"}, cli.ExitUsage, "expected --output operator-values or operator-manifests"},
		{[]string{"-f", samples, "-o", "operator-values", "--chart", "gpu-operator"}, cli.ExitFailed, "--chart gpu-operator: the NodeTypes need nvidia-device-plugin"},
		{[]string{"-f", samples, "-o", "operator-values", "--mirror", "nvcr.io"}, cli.ExitUsage, "is not FROM=TO"},
		{[]string{"-f", samples, "-o", "user-data", "--machine", "a", "--mirror", "a=b"}, cli.ExitUsage, "expected --output operator-values or operator-manifests"},
		{[]string{"-f", samples, "-o", "operator-values", "--tenant", "none"}, cli.ExitFailed, "expected a NodePool of TenantCluster none"},
		{[]string{"-f", samples, "-o", "operator-values", "--nodetype", "none"}, cli.ExitFailed, "expected NodeType none"},
		{[]string{"-f", samples + "/osimage.yaml", "-o", "operator-values"}, cli.ExitFailed, "expected a NodeType"},
		{[]string{"-f", samples, "-f", "-", "-o", "operator-values"}, cli.ExitFailed, "NodeTypes h100 and operated: the GPU operator: it installs the container toolkit that operated needs"},
	} {
		status, stdout, stderr := render(more, c.args...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d, want %d and %q: %s%s", c.args, status, c.status, c.want, stdout, stderr)
		}
	}
}
