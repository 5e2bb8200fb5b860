package values

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/values/manifest"
)

// draChart is the one release of the driver: its cluster's objects have fixed names. The error is a *Conflict.
func (t tenant) draChart() ([]Chart, error) {
	if len(t.dra)+len(t.domains) == 0 {
		return nil, nil
	}
	groups := draGroups(t.dra)
	if len(groups) > 1 {
		a, b := groups[0], groups[1]
		return nil, &Conflict{NodeTypes: pair(a.nodes[0].Name, b.nodes[0].Name), Software: "the chart dra-driver-nvidia-gpu is installed once in a cluster",
			Message: "they want different feature gates or driver roots of it (" + a.want.String() + "; " + b.want.String() + "): give both the same dra.featureGates and driver.source, or a TenantCluster each, or apply --output operator-manifests, which has a DaemonSet for each"}
	}
	if counted := t.counted(); len(t.dra) > 0 && len(counted) > 0 {
		return nil, &Conflict{NodeTypes: pair(t.dra[0].Name, counted[0].Name), Software: "the chart dra-driver-nvidia-gpu is installed once in a cluster",
			Message: "compute domains put it on the nodes of " + counted[0].Name + ", where it would publish the GPUs that the device plugin advertises: give both the presentation mode DRA, or a TenantCluster each"}
	}
	want := draWant{root: hostRoot}
	if len(groups) > 0 {
		want = groups[0].want
	} else if operated(t.domains[0]) {
		want.root = podRoot
	}
	return []Chart{t.draRelease(want)}, nil
}

// String tells it to people.
func (w draWant) String() string {
	if w.gates == "" {
		return "no feature gates, root " + w.root
	}
	return w.gates + ", root " + w.root
}

func (t tenant) draRelease(want draWant) Chart {
	nodes := sorted(slices.Concat(t.dra, t.counted()))
	gpus := len(t.dra) > 0
	gates := map[string]any{}
	for _, g := range want.list() {
		gates[g] = true
	}
	c := Chart{
		Name: "dra-driver-nvidia-gpu", Repository: ngc, Version: draVersion, Release: draName, Namespace: draName,
		Values: map[string]any{
			"nvidiaDriverRoot": want.root, "gpuResourcesEnabledOverride": gpus,
			"resources":     map[string]any{"gpus": map[string]any{"enabled": gpus}, "computeDomains": map[string]any{"enabled": len(t.domains) > 0}},
			"featureGates":  gates,
			"kubeletPlugin": map[string]any{"affinity": manifest.Affinity(v1alpha1.LabelNodeType, names(nodes)), "tolerations": manifest.Tolerations(tolerations("nvidia.com/gpu", nodes))},
		},
	}
	if len(t.domains) == 0 {
		// It converts objects of compute domains, and needs cert-manager.
		c.Values["webhook"] = map[string]any{"enabled": false}
	} else {
		c.Warnings = append(c.Warnings, "compute domains have a webhook, whose certificate comes from cert-manager unless webhook.tls says otherwise")
	}
	if len(want.list()) > 0 {
		c.Warnings = append(c.Warnings, "releases of the driver differ in the feature gates that they know; "+strings.Join(want.list(), ", ")+" must be among those of "+draVersion+", or take a newer release")
	}
	return c
}

// counted are the NodeTypes with compute domains whose GPUs the device plugin advertises.
func (t tenant) counted() []NodeType {
	return only(t.domains, func(n NodeType) bool { return !published(n, nvidiaDRA) })
}

func pair(a, b string) [2]string {
	if b < a {
		a, b = b, a
	}
	return [2]string{a, b}
}
