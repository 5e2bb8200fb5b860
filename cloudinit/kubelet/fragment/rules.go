package fragment

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// indexes are the numbers of items in a path.
var indexes = regexp.MustCompile(`\[\d+\]`)

// owned are the members that Ingot sets, with the reason and what to do instead.
var owned = map[string]string{
	"registerWithTaints":       "Ingot registers the node with its gate, so that no pod runs before the verdict: use spec.node.taints",
	"registerNode":             "a node that does not register never joins: remove it",
	"providerID":               "it binds the Node to this installation of its Machine: remove it",
	"authentication":           "Ingot trusts the tenant's CA there, and lets nobody in without a certificate or token: remove it",
	"authorization":            "Ingot has the tenant's API server decide who may call kubelet: remove it",
	"rotateCertificates":       "a node whose certificate is not renewed leaves the cluster after its first year: remove it",
	"serverTLSBootstrap":       "it is a property of the cluster that is joined, which must approve what kubelet requests: use spec.servingCertificates of the TenantCluster",
	"cgroupDriver":             "Ingot sets systemd, which containerd must have too: remove it",
	"containerRuntimeEndpoint": "Ingot names containerd's socket: remove it",
	"clusterDNS":               "it is a property of the cluster that is joined: use spec.clusterDNS of the TenantCluster",
	"clusterDomain":            "it is a property of the cluster that is joined: use spec.clusterDomain of the TenantCluster",
}

// typeMeta are the members that say what kind the document is.
var typeMeta = map[string]string{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}

func ownedFindings(tree map[string]any) []Finding {
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if reason, found := owned[name]; found {
			out = append(out, Finding{Path: name, Message: reason})
		}
		if want, found := typeMeta[name]; found && tree[name] != want {
			out = append(out, Finding{Path: name, Message: "it can only be " + want + ": remove it"})
		}
	}
	return out
}

// valueFindings refuses values that kubelet does not start with (pkg/kubelet/apis/config/validation, and the managers of pkg/kubelet/cm).
func valueFindings(c kubeletconfig.KubeletConfiguration) []Finding {
	out := slices.Concat(
		oneOf("cpuManagerPolicy", c.CPUManagerPolicy, "none", "static"),
		oneOf("memoryManagerPolicy", c.MemoryManagerPolicy, "None", "Static"),
		oneOf("topologyManagerPolicy", c.TopologyManagerPolicy, "none", "best-effort", "restricted", "single-numa-node"),
		oneOf("topologyManagerScope", c.TopologyManagerScope, "container", "pod"),
		quantities("kubeReserved", c.KubeReserved, false, "cpu", "memory", "ephemeral-storage", "pid"),
		quantities("systemReserved", c.SystemReserved, false, "cpu", "memory", "ephemeral-storage", "pid"),
		quantities("evictionHard", c.EvictionHard, true),
		quantities("evictionSoft", c.EvictionSoft, true),
	)
	if c.MaxPods < 0 {
		out = append(out, Finding{Path: "maxPods", Message: "it must not be negative"})
	}
	if c.CgroupsPerQOS != nil && !*c.CgroupsPerQOS && !slices.Equal(c.EnforceNodeAllocatable, []string{"none"}) {
		out = append(out, Finding{Path: "cgroupsPerQOS", Message: "without these cgroups kubelet starts only with enforceNodeAllocatable: [none]"})
	}
	return append(out, staticMemoryFindings(c)...)
}

// staticMemoryFindings refuses a Static memory manager whose sum depends on the server: kubelet starts only when reservedMemory is exactly what is reserved
// and evicted at (pkg/kubelet/cm/memorymanager), and the defaults of the reservation follow from the size of the server.
func staticMemoryFindings(c kubeletconfig.KubeletConfiguration) []Finding {
	if c.MemoryManagerPolicy != "Static" {
		return nil
	}
	var missing []string
	if len(c.ReservedMemory) == 0 {
		missing = append(missing, "reservedMemory")
	}
	for name, set := range map[string]map[string]string{"kubeReserved": c.KubeReserved, "systemReserved": c.SystemReserved} {
		if set["memory"] == "" {
			missing = append(missing, name+".memory")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return []Finding{{Path: "memoryManagerPolicy", Message: "Static needs reservedMemory that is the sum of kubeReserved, systemReserved and evictionHard, or kubelet does not start: set " + strings.Join(missing, ", ") + " too"}}
}

func oneOf(path, value string, allowed ...string) []Finding {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return []Finding{{Path: path, Message: fmt.Sprintf("it is %q, and kubelet knows %s", value, strings.Join(allowed, ", "))}}
}

// quantities refuses values that are no quantities, or percentages where these are allowed, and names that are not among the known ones, when there are any.
func quantities(path string, values map[string]string, percent bool, known ...string) []Finding {
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(known) > 0 && !slices.Contains(known, name) {
			out = append(out, Finding{Path: path + "." + name, Message: "kubelet reserves " + strings.Join(known, ", ") + " there"})
			continue
		}
		if percent && strings.HasSuffix(values[name], "%") {
			continue
		}
		if q, err := resource.ParseQuantity(values[name]); err != nil || q.Sign() < 0 {
			out = append(out, Finding{Path: path + "." + name, Message: fmt.Sprintf("%q is no quantity such as 8Gi or 500m", values[name])})
		}
	}
	return out
}

// nearest returns the name that differs least from a word, or none when all differ in more than a third of it.
func nearest(word string, names []string) string {
	best, least := "", len(word)/3+1
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of letters to add, to remove or to replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
