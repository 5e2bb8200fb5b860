package clusterapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// Kinds that are converted, or that others refer to.
const (
	kindCluster           = "Cluster"
	kindMetal3Cluster     = "Metal3Cluster"
	kindMachineDeployment = "MachineDeployment"
	kindMachineTemplate   = "Metal3MachineTemplate"
	kindDataTemplate      = "Metal3DataTemplate"
	kindConfigTemplate    = "KubeadmConfigTemplate"
	kindIPPool            = "IPPool"
	kindHost              = "BareMetalHost"
)

// converter holds the objects that others refer to, and the report.
type converter struct {
	conversion.Report
	objects map[string]offline.Manifest
	used    map[string]bool
	// providers have the NodeProvider's spec by the namespace of hosts, images the OSImages by URL.
	providers map[string]map[string]any
	images    map[string]convertedImage
	// imageNames are the names of OSImages that are taken.
	imageNames map[string]bool
	// nodeTypes are the names that are taken.
	nodeTypes map[string]bool
}

// IsKnown reports whether an object belongs to Cluster API or Metal3.
func IsKnown(m offline.Manifest) bool {
	group, _, _ := strings.Cut(m.APIVersion(), "/")
	return group == "metal3.io" || group == "cluster.x-k8s.io" || strings.HasSuffix(group, ".cluster.x-k8s.io") || group == "ipam.metal3.io"
}

// Convert converts the MachineDeployments with what they refer to.
func Convert(all []offline.Manifest) conversion.Report {
	c := &converter{
		objects: map[string]offline.Manifest{}, used: map[string]bool{}, providers: map[string]map[string]any{}, images: map[string]convertedImage{}, imageNames: map[string]bool{}, nodeTypes: map[string]bool{},
	}
	for _, m := range all {
		if IsKnown(m) {
			c.objects[key(m.Kind(), m.Namespace(), m.Name())] = m
		}
	}
	c.convertAll(all, kindCluster, c.convertCluster)
	var deployments []deployment
	c.convertAll(all, kindMachineDeployment, func(m offline.Manifest) { deployments = append(deployments, c.readDeployment(m)) })
	for _, d := range deployments {
		c.Begin()
		c.convertProvider(d, clustersOf(deployments, d.hostNamespace))
	}
	for _, d := range deployments {
		c.Begin()
		c.convertDeployment(d)
	}
	c.convertAll(all, kindHost, c.keepHost)
	for _, m := range all {
		if IsKnown(m) {
			c.reportNotConverted(m)
		}
	}
	return c.Report
}

func (c *converter) convertAll(all []offline.Manifest, kind string, convert func(offline.Manifest)) {
	for _, m := range all {
		if IsKnown(m) && m.Kind() == kind {
			c.Begin()
			convert(m)
		}
	}
}

// key names an object. Objects whose manifests say no namespace are in one namespace.
func key(kind, namespace, name string) string {
	return kind + " " + cmp.Or(namespace, "default") + "/" + name
}

// find returns an object that another one refers to, and marks it as used. A reference without a namespace means that of the referring object.
func (c *converter) find(from offline.Manifest, field, kind string, ref map[string]any) (offline.Manifest, bool) {
	name := conversion.ValueAt[string](ref, "name")
	if name == "" {
		return offline.Manifest{}, false
	}
	k := key(kind, cmp.Or(conversion.ValueAt[string](ref, "namespace"), from.Namespace()), name)
	m, there := c.objects[k]
	if !there {
		c.AddFinding(from, field, conversion.RuleLost, "%s %s is not in the files: give its file too", kind, name)
		return m, false
	}
	c.used[k] = true
	return m, true
}

// notConverted says what to do about kinds that are not converted.
var notConverted = map[string]string{
	"KubeadmControlPlane":         "control planes stay with Cluster API: Ingot makes nodes for tenants' workloads",
	"KubeadmControlPlaneTemplate": "control planes stay with Cluster API: Ingot makes nodes for tenants' workloads",
	"MachineSet":                  "a NodePool has no sets: delete it with its MachineDeployment when its hosts are released",
	"Machine":                     "make a NodePool with so many replicas; its hosts are installed again",
	"Metal3Machine":               "make a NodePool with so many replicas; its hosts are installed again",
	"MachineHealthCheck":          "Ingot replaces no node by itself: a node that fails is tainted at once, its Machine says why, and `ingot why` what to do",
	"Metal3RemediationTemplate":   "Ingot replaces no node by itself: a node that fails is tainted at once, its Machine says why, and `ingot why` what to do",
	"ClusterClass":                "give the objects that are made of it (kubectl get machinedeployments,metal3machinetemplates,kubeadmconfigtemplates -o yaml)",
	"Metal3ClusterTemplate":       "give the objects that are made of it (kubectl get metal3clusters -o yaml)",
	"MachinePool":                 "make a NodePool with so many replicas",
	"KubeadmConfig":               "it belongs to one machine: give the KubeadmConfigTemplate",
	"HostFirmwareSettings":        "it stays as it is: the baremetal-operator acts on it",
	"FirmwareSchema":              "it stays as it is: the baremetal-operator acts on it",
	"HostFirmwareComponents":      "it stays as it is: the baremetal-operator acts on it",
	"HardwareData":                "",
	"Metal3Data":                  "",
	"Metal3DataClaim":             "",
	"IPAddress":                   "",
	"IPClaim":                     "",
}

// reportNotConverted adds a finding for an object that was not converted.
func (c *converter) reportNotConverted(m offline.Manifest) {
	kind := m.Kind()
	if kind == kindCluster || kind == kindMachineDeployment || kind == kindHost || c.used[key(kind, m.Namespace(), m.Name())] {
		return
	}
	if slices.Contains([]string{kindMachineTemplate, kindDataTemplate, kindConfigTemplate, kindMetal3Cluster, kindIPPool}, kind) {
		c.AddFinding(m, "", conversion.RuleLost, "no MachineDeployment in the files refers to it: those of control planes stay with Cluster API")
		return
	}
	what, isKnown := notConverted[kind]
	switch {
	case !isKnown:
		c.AddFinding(m, "", conversion.RuleLost, "this version does not know what to make of it")
	case what != "":
		c.AddFinding(m, "", conversion.RuleLost, "%s", what)
	}
}
