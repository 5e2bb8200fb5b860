package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// runVCluster prints the values of a tenant's virtual cluster.
func runVCluster(cmd *cobra.Command, opts options) error {
	if opts.tenant == "" || opts.flags.NodeType != "" || opts.machine != "" || opts.host != "" || opts.chart != "" || len(opts.mirrors) > 0 {
		return cli.Usagef(cmd, "--output %s: expected --tenant, the tenant of an Entitlement or a TenantCluster that joins by vcluster, and neither --nodetype, --machine, --host, --chart nor --mirror", vclusterValues)
	}
	files, err := opts.flags.Open(cmd)
	if err != nil {
		return err
	}
	values, note, err := vclusterValuesOf(files, opts.tenant)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	text, err := yaml.Marshal(values)
	if err != nil {
		return fmt.Errorf("print the values: %w", err)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// vclusterValuesOf returns the values of the virtual cluster of a tenant, and what to know of them. Of a TenantCluster only one that joins by vcluster is a
// virtual cluster.
func vclusterValuesOf(files offline.Files, name string) (values object, note string, err error) {
	entitlements := manifestsWith(files, "Entitlement", name, "spec", "tenant")
	clusters := manifestsWith(files, "TenantCluster", name, "metadata", "name")
	virtual, err := virtualClusters(clusters)
	if err != nil {
		return nil, "", err
	}
	switch {
	case len(entitlements) > 0 && len(virtual) > 0:
		return nil, "", &offline.AmbiguousError{Kind: "tenant or TenantCluster " + name, Names: names(append(entitlements, virtual...)), Flag: "-f"}
	case len(entitlements) > 0:
		label, err := tenantLabel(entitlements, name)
		return sharedNodes(label, name), "the DeviceClasses of the tenant are synced, and claims go to the shared cluster, which schedules the pods; syncing of DRA is a paid feature of vCluster", err
	case len(virtual) > 0:
		return privateNodes(), "the nodes join the virtual cluster; private nodes are a paid feature of vCluster", nil
	case len(clusters) > 0:
		return nil, "", notVirtual(files, clusters[0])
	}
	var seen []string
	for _, tenant := range fieldValues(files, "Entitlement", "spec", "tenant") {
		seen = append(seen, "tenant "+tenant)
	}
	for _, cluster := range fieldValues(files, "TenantCluster", "metadata", "name") {
		seen = append(seen, "TenantCluster "+cluster)
	}
	return nil, "", &offline.MissingError{Kind: "Entitlement of tenant, or TenantCluster,", Name: name, Names: seen, Files: files.Names}
}

// manifestsWith returns the objects of a kind whose field has the value.
func manifestsWith(files offline.Files, kind, value string, field ...string) []offline.Manifest {
	var out []offline.Manifest
	for _, m := range files.Manifests {
		if m.Kind() == kind && m.APIVersion() == v1alpha1.GroupVersion.String() && m.StringField(field...) == value {
			out = append(out, m)
		}
	}
	return out
}

// names returns the kinds and names of objects.
func names(manifests []offline.Manifest) []string {
	var out []string
	for _, m := range manifests {
		out = append(out, m.String())
	}
	return out
}

// virtualClusters returns those of the TenantClusters that nodes join by vcluster.
func virtualClusters(clusters []offline.Manifest) ([]offline.Manifest, error) {
	var out []offline.Manifest
	for _, m := range clusters {
		method, err := joinMethod(m)
		if err != nil {
			return nil, err
		}
		if method == v1alpha1.JoinVCluster {
			out = append(out, m)
		}
	}
	return out, nil
}

// joinMethod returns the way in which nodes join a TenantCluster.
func joinMethod(m offline.Manifest) (v1alpha1.JoinMethod, error) {
	var cluster v1alpha1.TenantCluster
	if err := m.Decode(&cluster); err != nil {
		return "", err
	}
	return cluster.Spec.Join.Method(), nil
}

// notVirtual is the error for a TenantCluster that is no virtual cluster. Where tenants share it, one of them was meant.
func notVirtual(files offline.Files, cluster offline.Manifest) error {
	method, err := joinMethod(cluster)
	if err != nil {
		return err
	}
	var tenants []string
	for _, m := range manifestsWith(files, "Entitlement", cluster.Name(), "spec", "tenantClusterRef", "name") {
		if tenant := m.StringField("spec", "tenant"); m.Namespace() == cluster.Namespace() && !slices.Contains(tenants, tenant) {
			tenants = append(tenants, tenant)
		}
	}
	advice := ": expected the tenant of an Entitlement, or a TenantCluster that joins by vcluster"
	if len(tenants) > 0 {
		advice = "; did you mean tenant " + strings.Join(tenants, " or ") + "?"
	}
	return fmt.Errorf("TenantCluster %s joins by %s, not by %s%s", cluster.Name(), method, v1alpha1.JoinVCluster, advice)
}

// tenantLabel returns the label key under which the DeviceClasses of a tenant have it.
func tenantLabel(entitlements []offline.Manifest, tenant string) (string, error) {
	var names, labels []string
	for _, m := range entitlements {
		names = append(names, m.Name())
		if label := cmp.Or(m.StringField("spec", "tenantLabel"), v1alpha1.LabelTenant); !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	if len(labels) > 1 {
		return "", &offline.AmbiguousError{Kind: "tenantLabel of tenant " + tenant, Names: names, Flag: "-f"}
	}
	return labels[0], nil
}

type object = map[string]any

// privateNodes are the values of a virtual cluster that nodes join.
func privateNodes() object { return object{"privateNodes": object{"enabled": true}} }

// sharedNodes are the values of a virtual cluster whose pods run in a shared one. The virtual cluster has no scheduler of its own: the shared cluster
// refuses pods with a node.
func sharedNodes(label, tenant string) object {
	enabled := object{"enabled": true}
	return object{"sync": object{
		"fromHost": object{"deviceClasses": object{"enabled": true, "selector": object{"matchLabels": object{label: tenant}}}},
		"toHost":   object{"resourceClaims": enabled, "resourceClaimTemplates": enabled},
	}}
}
