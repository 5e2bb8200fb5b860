package fragment

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func check(t *testing.T, text, version string) string {
	t.Helper()
	members, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range Check(members, version) {
		out = append(out, f.Path+": "+f.Message)
	}
	return strings.Join(out, "\n")
}

func TestWhatKubeletReadsIsAccepted(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           "{}",
		"a whole document":  "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 64",
		"reserved":          "kubeReserved: {cpu: 500m, memory: 8Gi, pid: '1000'}\nsystemReserved: {ephemeral-storage: 10Gi}\nevictionHard: {memory.available: 5%, nodefs.available: 10Gi}",
		"NUMA":              "cpuManagerPolicy: static\ntopologyManagerPolicy: single-numa-node\ntopologyManagerScope: pod\ntopologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\nreservedSystemCPUs: 0-3",
		"durations, lists":  "shutdownGracePeriod: 30s\nallowedUnsafeSysctls: [net.*]\nlogging: {format: json}",
		"gates":             "featureGates: {AllAlpha: false, DynamicResourceAllocation: true}",
		"a static memory":   "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 2148Mi}}]\nkubeReserved: {memory: 1Gi}\nsystemReserved: {memory: 1Gi}",
		"without QOS group": "cgroupsPerQOS: false\nenforceNodeAllocatable: [none]",
	} {
		if got := check(t, text, "1.37.0"); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if Check(nil, "1.37.0") != nil {
		t.Error("nothing at all is refused")
	}
}

func TestWhatKubeletDoesNotReadIsRefusedByItsPath(t *testing.T) {
	for name, test := range map[string]struct{ text, version, want string }{
		"an unknown member":         {"maxpods: 64", "1.37.0", "maxpods: KubeletConfiguration has no such member: did you mean maxPods?"},
		"nothing like it":           {"gpuPolicy: x", "1.37.0", "gpuPolicy: KubeletConfiguration has no such member"},
		"an unknown member below":   {"memorySwap: {swapBehaviour: NoSwap}", "1.37.0", "memorySwap.swapBehaviour: KubeletConfiguration has no such member: did you mean memorySwap.swapBehavior?"},
		"below an item":             {"reservedMemory: [{numanode: 0}]", "1.37.0", "did you mean reservedMemory[0].numaNode?"},
		"of another package's type": {"logging: {formats: json}", "1.37.0", "logging.formats: "},
		"another type":              {"maxPods: many", "1.37.0", "maxPods: it is a string, and kubelet reads a number there"},
		"no object":                 {"[1]", "1.37.0", ": it must be an object"},
		"null":                      {"kubeReserved: {cpu: null}", "1.37.0", "kubeReserved.cpu: it is null"},
		"Ingot's own":               {"registerWithTaints: []", "1.37.0", "registerWithTaints: Ingot registers the node with its gate, so that no pod runs before the verdict: use spec.node.taints"},
		"the cluster's DNS":         {"clusterDNS: [10.96.0.10]", "1.37.0", "clusterDNS: it is a property of the cluster that is joined: use spec.clusterDNS of the TenantCluster"},
		"another kind":              {"kind: NodeConfig", "1.37.0", "kind: it can only be KubeletConfiguration"},
		"a newer member":            {"defaultPodSysctls: {net.core.somaxconn: '1024'}", "1.36.2", "defaultPodSysctls: kubelet has it since 1.37, and the image's is 1.36.2: remove it, or use an image with kubelet 1.37"},
		"an unknown gate":           {"featureGates: {DynamicResourceAlocation: true}", "1.37.0", "featureGates.DynamicResourceAlocation: no release from 1.32 to 1.37 has this feature gate, and kubelet does not start with a gate that it does not know: did you mean DynamicResourceAllocation?"},
		"a newer gate":              {"featureGates: {DRAExtendedResource: true}", "1.33.1", "featureGates.DRAExtendedResource: kubelet has this feature gate since 1.34, and the image's is 1.33.1, which would not start"},
		"a gate that is gone":       {"featureGates: {APIListChunking: true}", "1.37.0", "featureGates.APIListChunking: kubelet has this feature gate up to 1.3"},
		"a locked gate":             {"featureGates: {SidecarContainers: false}", "1.35.0", "featureGates.SidecarContainers: it is always true in the image's kubelet 1.35.0"},
		"no beta gates":             {"featureGates: {AllBeta: false}", "1.37.0", "featureGates.AllBeta: kubelet 1.37.0 does not start without its beta gates"},
		"a policy":                  {"topologyManagerPolicy: single-numa", "1.37.0", `topologyManagerPolicy: it is "single-numa", and kubelet knows none, best-effort, restricted, single-numa-node`},
		"no quantity":               {"kubeReserved: {memory: 8 GB}", "1.37.0", `kubeReserved.memory: "8 GB" is no quantity such as 8Gi or 500m`},
		"a resource":                {"systemReserved: {gpu: '1'}", "1.37.0", "systemReserved.gpu: kubelet reserves cpu, memory"},
		"a static memory":           {"memoryManagerPolicy: Static", "1.37.0", "set kubeReserved.memory, reservedMemory, systemReserved.memory too"},
		"an old kubelet":            {"maxPods: 64", "1.29.1", ": the image's kubelet 1.29.1 reads no settings from a directory: use an image with kubelet 1.30 or later"},
		"without QOS groups":        {"cgroupsPerQOS: false", "1.37.0", "cgroupsPerQOS: without these cgroups"},
	} {
		if got := check(t, test.text, test.version); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestOwnedMembersExist keeps the list of owned members in step with Kubernetes' types.
func TestOwnedMembersExist(t *testing.T) {
	for name := range owned {
		if _, found := table().Members[name]; !found {
			t.Errorf("KubeletConfiguration has no %s", name)
		}
	}
	if n := len(table().Minors); n != 6 {
		t.Errorf("the table has %d releases", n)
	}
}

func TestAVersionOutsideTheTableIsTheNearestOne(t *testing.T) {
	newest := table().Minors[len(table().Minors)-1]
	for version, want := range map[string]int{"1.20.1": table().Minors[0], "1.99.0-rc.1": newest, "": newest, "2.0.0": newest, "v1.35.2": 35} {
		if got := releaseOf(version); got != want {
			t.Errorf("%q: %d, want %d", version, got, want)
		}
	}
}
